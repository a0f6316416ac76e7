package bench

// Scale says how much is measured.
type Scale struct {
	Rounds   int // of what is compared
	Requests int // of 1 KiB in a round; larger answers get fewer
	Clients  int // of a load
	// CacheRounds are those of the comparison with other caches.
	CacheRounds int
	// Crowds are the numbers of clients of the stampedes; Groups how many small ones the delays are taken from.
	Crowds []int
	Groups int
	// Changes is how many times the feed changes.
	Changes int
	// Scanned is the number of one-time keys of 1 MiB, Stalled that of clients that stop reading.
	Scanned, Stalled int
	// Small and Large are the entries of 1 KiB and of 1 MiB that the memory rows store.
	Small, Large int
	// Against, if set, is the path of another build of weir, which the hit path is compared with.
	Against string
}

// Full is the scale of make bench.
func Full() Scale {
	return Scale{
		Rounds: 41, Requests: 800, Clients: 16, CacheRounds: 7, Crowds: []int{250, 5000}, Groups: 100, Changes: 200,
		Scanned: 1000, Stalled: 200,
		Small: 1_000_000, Large: 10_000,
	}
}

// Quick keeps a run below a minute; what it leaves out has no row.
func Quick() Scale {
	return Scale{
		Rounds: 15, Requests: 400, Clients: 16, CacheRounds: 1, Crowds: []int{250, 5000}, Groups: 25, Changes: 40,
		Scanned: 300, Stalled: 20,
		Small: 100_000, Large: 200,
	}
}
