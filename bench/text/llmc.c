/* Times training steps of llm.c's C version: the counterpart of dahl and PyTorch in bench/parity/RESULTS.md.
 *
 *   gcc -Ofast -march=native -fopenmp -DOMP -Wno-unused-result -Wno-ignored-pragmas -I LLMC bench/text/llmc.c -lm -lgomp -o bin/llmc &&
 *   OMP_NUM_THREADS=2 bin/llmc LAYERS HEADS CHANNELS POSITIONS VOCABULARY BATCH STEPS
 *
 * LLMC is a checkout of github.com/karpathy/llm.c, and the flags are those of its Makefile. gpt-tiny is 4 4 128 64 256 12, gpt-char 6 6 384 256 256 8, and
 * gpt2 on 4 sequences of 64 tokens 12 12 768 64 50257 4. Weights are random, and all steps train on one batch of random tokens, so that the loss falls from
 * the logarithm of the vocabulary. A step is what llm.c's own loop times: forward, gradients set to zero, backward, AdamW. It clips no gradient. A first
 * step allocates memory and is not timed.
 */
#define TESTING /* leaves main out of train_gpt2.c */
#include "train_gpt2.c"

static uint64_t state = 1;

/* Knuth's linear congruential generator. Its high bits are the random ones. */
static uint32_t random_bits(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return state >> 32;
}

/* Writes the header and the tensors that gpt2_build_from_checkpoint reads: scales of normalisations are 1, biases 0, matrices of GPT-2's deviation of 0.02. */
static void write_checkpoint(FILE *out, GPT2Config c)
{
	int header[256] = { 20240326, 3, c.max_seq_len, c.vocab_size, c.num_layers, c.num_heads, c.channels, c.padded_vocab_size };
	const char *kinds = "mm10m0m010m0m010"; /* a matrix, ones or zeros, in the order of ParameterTensors */
	size_t sizes[NUM_PARAMETER_TENSORS];
	fill_in_parameter_sizes(sizes, c);
	int failed = out == NULL || fwrite(header, sizeof header, 1, out) != 1;
	for (int i = 0; i < NUM_PARAMETER_TENSORS && !failed; i++)
		for (size_t j = 0; j < sizes[i]; j++) {
			float uniform = random_bits() / 2147483648.0f - 1; /* between -1 and 1, of deviation 1/sqrt(3) */
			float weight = kinds[i] == 'm' ? 0.02f * sqrtf(3) * uniform : kinds[i] - '0';
			failed |= fwrite(&weight, sizeof weight, 1, out) != 1;
		}
	if (failed || fclose(out) != 0)
		perror("checkpoint"), exit(1);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int n[8] = { 0 };
	for (int i = 1; i < argc && i < 8; i++)
		n[i] = atoi(argv[i]);
	int positions = n[4], vocabulary = n[5], batch = n[6], steps = n[7], tokens = batch * positions;
	if (argc != 8 || tokens < 1 || steps < 1 || vocabulary < 1)
		return fprintf(stderr, "usage: llmc LAYERS HEADS CHANNELS POSITIONS VOCABULARY BATCH STEPS\n"), 2;
	GPT2Config config = { positions, vocabulary, (vocabulary + 127) / 128 * 128, n[1], n[2], n[3] }; /* llm.c pads to a multiple of 128 */
	char path[] = "/tmp/llmc-XXXXXX";
	write_checkpoint(fdopen(mkstemp(path), "wb"), config);
	GPT2 model;
	gpt2_build_from_checkpoint(&model, path);
	unlink(path);
	int *text = malloc((tokens + 1) * sizeof *text);
	for (int i = 0; i <= tokens; i++)
		text[i] = random_bits() % vocabulary;
	double *times = malloc(steps * sizeof *times);
	for (int step = 0; step <= steps; step++) {
		struct timespec start, end;
		clock_gettime(CLOCK_MONOTONIC, &start);
		gpt2_forward(&model, text, text + 1, batch, positions);
		gpt2_zero_grad(&model);
		gpt2_backward(&model);
		gpt2_update(&model, 1e-3f, 0.9f, 0.99f, 1e-8f, 0.1f, step + 1);
		clock_gettime(CLOCK_MONOTONIC, &end);
		if (step > 0)
			times[step - 1] = (end.tv_sec - start.tv_sec) * 1e3 + (end.tv_nsec - start.tv_nsec) / 1e6;
		if (step == 0 || step == steps)
			printf("loss before step %d: %.4f\n", step, model.mean_loss);
	}
	qsort(times, steps, sizeof *times, ascending);
	printf("%d steps of %.1f to %.1f ms, median %.1f ms, %.0f tokens per second\n", steps, times[0], times[steps - 1], times[steps / 2], tokens / times[steps / 2] * 1e3);
}
