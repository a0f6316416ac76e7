package harness

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// LoadOptions describes a steady load.
type LoadOptions struct {
	Request *http.Request
	// Rate is in requests a second, Duration how long it lasts.
	Rate     int
	Duration time.Duration
	// Connections is the number of clients; each has one request under way at a time.
	Connections int
}

// LoadResult is what the clients of a load saw.
type LoadResult struct {
	// Latencies are the times to the last byte, ascending, of requests that were answered. They count from the time a
	// request was due, so a client that is held up does not hide what the others would have met.
	Latencies []time.Duration
	Statuses  map[int]int
	// CacheStatus counts responses by the value of Cache-Status.
	CacheStatus map[string]int
	// Errors counts requests that got no whole response.
	Errors int
}

// Load sends requests at a steady rate and waits for the answers.
func Load(tb TB, o LoadOptions) LoadResult {
	tb.Helper()
	raiseFileLimit(tb)
	client := newClient(tb)
	client.Transport.(*http.Transport).MaxIdleConnsPerHost = o.Connections
	defer client.CloseIdleConnections()

	total := int(o.Duration.Seconds() * float64(o.Rate))
	due := make(chan time.Time, total) // holds the whole plan: the pace does not depend on the clients
	results := make([]LoadResult, o.Connections)
	var wg sync.WaitGroup
	for i := range o.Connections {
		wg.Go(func() { results[i] = loadClient(client, o.Request, due) })
	}
	start := time.Now()
	for n := range total {
		at := start.Add(time.Duration(float64(n) / float64(o.Rate) * float64(time.Second)))
		time.Sleep(time.Until(at))
		due <- at
	}
	close(due)
	wg.Wait()
	return MergeLoads(results)
}

func loadClient(client *http.Client, request *http.Request, due <-chan time.Time) LoadResult {
	r := LoadResult{Statuses: make(map[int]int), CacheStatus: make(map[string]int)}
	for at := range due {
		resp, err := client.Do(request.Clone(request.Context()))
		if err != nil {
			r.Errors++
			continue
		}
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			r.Errors++
			continue
		}
		r.Latencies = append(r.Latencies, time.Since(at))
		r.Statuses[resp.StatusCode]++
		r.CacheStatus[resp.Header.Get("Cache-Status")]++
	}
	return r
}

// MergeLoads returns what the clients of several loads saw.
func MergeLoads(results []LoadResult) LoadResult {
	all := LoadResult{Statuses: make(map[int]int), CacheStatus: make(map[string]int)}
	for _, r := range results {
		all.Latencies = append(all.Latencies, r.Latencies...)
		all.Errors += r.Errors
		for status := range maps.Keys(r.Statuses) {
			all.Statuses[status] += r.Statuses[status]
		}
		for value := range maps.Keys(r.CacheStatus) {
			all.CacheStatus[value] += r.CacheStatus[value]
		}
	}
	slices.Sort(all.Latencies)
	return all
}

// Percentile returns the p-th percentile (0–100) of ascending times; of none it is 0.
func Percentile(ascending []time.Duration, p float64) time.Duration {
	if len(ascending) == 0 {
		return 0
	}
	return ascending[min(int(p/100*float64(len(ascending))), len(ascending)-1)]
}
