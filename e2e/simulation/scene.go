package simulation

import (
	"iter"
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// Trouble is what is wrong with the origin.
type Trouble int

// The troubles of an origin.
const (
	Fine Trouble = iota
	Slow
	Failing // answers 503
	Frozen  // does not answer
)

// slowdown is how many times longer a slow origin takes.
const slowdown = 12

// Phase is a part of the day in which something is not as usual.
type Phase struct {
	Name     string
	From, To time.Duration // since the beginning
	Trouble  Trouble
	Crowd    float64 // more requests a second, all for one page
}

// Scene is a day: who asks for what, and how the origin fares. All of it follows
// from the seed.
type Scene struct {
	Seed     uint64
	Length   time.Duration
	Rate     float64 // requests a second, on the mean of the day
	Keys     uint64  // pages
	Exponent float64 // of Zipf's law, above 1
	Phases   []Phase
}

// Day is the scene of the page in docs: 24 hours.
func Day() Scene {
	return Scene{
		Seed: 2015, Length: 24 * time.Hour, Rate: 2, Keys: 300, Exponent: 1.35,
		Phases: []Phase{
			{Name: "crowd on one page", From: 8 * time.Hour, To: 8*time.Hour + 20*time.Minute, Crowd: 60},
			{Name: "origin slow", From: 12 * time.Hour, To: 13 * time.Hour, Trouble: Slow},
			{Name: "origin fails", From: 16 * time.Hour, To: 16*time.Hour + 10*time.Minute, Trouble: Failing},
			{Name: "origin frozen", From: 20 * time.Hour, To: 20*time.Hour + 10*time.Minute, Trouble: Frozen},
		},
	}
}

// troubleAt is how the origin fares at a time of day.
func (s *Scene) troubleAt(at time.Duration) Trouble {
	for _, p := range s.Phases {
		if p.From <= at && at < p.To && p.Trouble != Fine {
			return p.Trouble
		}
	}
	return Fine
}

// rateAt is how many requests a second come on the mean, and how many of them are
// of a crowd: few at night, most in the evening.
func (s *Scene) rateAt(at time.Duration) (all, crowd float64) {
	hour := 24 * float64(at) / float64(s.Length)
	all = s.Rate * (1 - 0.6*math.Cos(2*math.Pi*(hour-4)/24))
	for _, p := range s.Phases {
		if p.From <= at && at < p.To {
			crowd += p.Crowd
		}
	}
	return all + crowd, crowd
}

// arrivals are the requests of the day: a Poisson process whose rate changes, by
// thinning (Lewis, Shedler: Simulation of Nonhomogeneous Poisson Processes by
// Thinning, 1979).
func (s *Scene) arrivals() iter.Seq2[time.Duration, string] {
	return func(yield func(time.Duration, string) bool) {
		r := rand.New(rand.NewPCG(s.Seed, 1))
		pages := rand.NewZipf(r, s.Exponent, 1, s.Keys-1)
		most := 1.6 * s.Rate
		for _, p := range s.Phases {
			most = max(most, 1.6*s.Rate+p.Crowd)
		}
		for at := time.Duration(0); ; {
			at += time.Duration(r.ExpFloat64() / most * float64(time.Second))
			if at >= s.Length {
				return
			}
			all, crowd := s.rateAt(at)
			u := r.Float64() * most
			if u >= all {
				continue
			}
			path := crowdPath
			if u >= crowd {
				path = "/page/" + strconv.FormatUint(pages.Uint64(), 10)
			}
			if !yield(at, path) {
				return
			}
		}
	}
}
