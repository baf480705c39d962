/* Empty tasks on StarPU: the counterpart of bench/tasks_test.go.
 *
 *   starpu-tasks SHAPE TASKS REPEATS
 *
 * runs one of the four graphs with the scheduler that STARPU_SCHED names and prints
 * a line for each repeat, "submit total", in nanoseconds: until the last task was
 * submitted, and until the last one had run. The first run of the process is a
 * warm-up and is not printed. Data are registered before the clock starts.
 */
#include <starpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHAIN_BUFFERS 1
#define ROUND_ROBIN_BUFFERS 1000

static void nothing(void *buffers[], void *argument) { (void)buffers; (void)argument; }

/* dmda and dmdas need a model; one of histories is what StarPU's own kernels have. */
static struct starpu_perfmodel model = { .type = STARPU_HISTORY_BASED, .symbol = "dahl_empty" };

static struct starpu_codelet codelet(int buffers)
{
	struct starpu_codelet c;
	starpu_codelet_init(&c);
	c.cpu_funcs[0] = nothing;
	c.nbuffers = buffers;
	for (int i = 0; i < buffers; i++)
		c.modes[i] = i == 0 ? STARPU_RW : STARPU_R;
	c.model = &model;
	c.name = "empty";
	return c;
}

static struct starpu_codelet codelets[4];

/* submit hands over a task that changes the first handle and reads the others. */
static void submit(int buffers, starpu_data_handle_t a, starpu_data_handle_t b, starpu_data_handle_t c)
{
	struct starpu_task *task = starpu_task_create();
	task->cl = &codelets[buffers];
	task->handles[0] = a;
	task->handles[1] = b;
	task->handles[2] = c;
	if (starpu_task_submit(task) != 0) {
		fprintf(stderr, "starpu-tasks: no worker can run the task\n");
		exit(1);
	}
}

static starpu_data_handle_t *handles;
static int handle_count;

/* A(i,j) of the lower triangle. */
static starpu_data_handle_t tile(int i, int j) { return handles[i * (i + 1) / 2 + j]; }

static void submit_cholesky(int n)
{
	for (int k = 0; k < n; k++) {
		submit(1, tile(k, k), NULL, NULL);
		for (int i = k + 1; i < n; i++)
			submit(2, tile(i, k), tile(k, k), NULL);
		for (int i = k + 1; i < n; i++) {
			submit(2, tile(i, i), tile(i, k), NULL);
			for (int j = k + 1; j < i; j++)
				submit(3, tile(i, j), tile(i, k), tile(j, k));
		}
	}
}

static void submit_all(int tasks, int tiles)
{
	if (tiles > 0) {
		submit_cholesky(tiles);
		return;
	}
	for (int t = 0; t < tasks; t++) {
		if (handle_count == 0)
			submit(0, NULL, NULL, NULL);
		else
			submit(1, handles[t % handle_count], NULL, NULL);
	}
}

/* tiles_for is the least number of tiles with at least so many tasks: n tiles make n(n+1)(n+2)/6. */
static int tiles_for(int tasks)
{
	int n = 1;
	while ((long)n * (n + 1) * (n + 2) / 6 < tasks)
		n++;
	return n;
}

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: starpu-tasks independent|chain|buffers|cholesky TASKS REPEATS\n");
		return 2;
	}
	const char *shape = argv[1];
	int tasks = atoi(argv[2]), repeats = atoi(argv[3]), tiles = 0;
	if (strcmp(shape, "chain") == 0)
		handle_count = CHAIN_BUFFERS;
	else if (strcmp(shape, "buffers") == 0)
		handle_count = ROUND_ROBIN_BUFFERS;
	else if (strcmp(shape, "cholesky") == 0) {
		tiles = tiles_for(tasks);
		handle_count = tiles * (tiles + 1) / 2;
	} else if (strcmp(shape, "independent") != 0) {
		fprintf(stderr, "starpu-tasks: no shape %s\n", shape);
		return 2;
	}
	if (starpu_init(NULL) != 0) {
		fprintf(stderr, "starpu-tasks: StarPU does not start\n");
		return 1;
	}
	for (int i = 0; i < 4; i++)
		codelets[i] = codelet(i);
	float *data = calloc(handle_count + 1, sizeof *data);
	handles = calloc(handle_count + 1, sizeof *handles);
	for (int i = 0; i < handle_count; i++)
		starpu_variable_data_register(&handles[i], STARPU_MAIN_RAM, (uintptr_t)&data[i], sizeof data[i]);
	for (int r = 0; r <= repeats; r++) {
		long long begin = now();
		submit_all(tasks, tiles);
		long long submitted = now();
		starpu_task_wait_for_all();
		if (r > 0)
			printf("%lld %lld\n", submitted - begin, now() - begin);
	}
	for (int i = 0; i < handle_count; i++)
		starpu_data_unregister(handles[i]);
	starpu_shutdown();
	free(handles);
	free(data);
	return 0;
}
