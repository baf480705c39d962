package calls

// Philox is the generator Philox 4×32 of ten rounds.
func Philox(key uint64, counter [4]uint32) [4]uint32 {
	k0, k1, c := uint32(key), uint32(key>>32), counter
	for range 10 {
		a, b := uint64(c[0])*0xD2511F53, uint64(c[2])*0xCD9E8D57
		c = [4]uint32{uint32(b>>32) ^ c[1] ^ k0, uint32(b), uint32(a>>32) ^ c[3] ^ k1, uint32(a)}
		k0, k1 = k0+0x9E3779B9, k1+0xBB67AE85
	}
	return c
}
