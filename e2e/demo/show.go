package main

import (
	"fmt"
	"strings"
	"time"
)

const (
	crowd     = 250 // clients that come at the same time
	smallCrew = 50
	rate      = 200 // requests a second of the steady load
	loadTime  = 4 * time.Second
)

// check is a number that must hold.
type check struct {
	what string
	held bool
}

// scene is one line of the show.
type scene struct {
	act    string // set on the first scene of an act
	title  string
	run    func(s *stage) outcome
	checks func(o outcome) []check
}

// show plays all scenes, and says whether all numbers held.
func show(s *stage, term *terminal) bool {
	total, failed := 0, 0
	for i, sc := range scenes() {
		if s.tb.Context().Err() != nil {
			return false
		}
		if sc.act != "" {
			term.act(sc.act)
		}
		term.begin(i+1, sc.title)
		o := sc.run(s)
		checks := append(sc.checks(o), check{"no client met an error", o.errors == 0})
		term.row(i+1, sc.title, o, checks)
		for _, c := range checks {
			total++
			if !c.held {
				failed++
			}
		}
	}
	term.verdict(total, failed)
	return failed == 0
}

func scenes() []scene {
	return append(append(coldScenes(), expiryScenes()...), troubleScenes()...)
}

func coldScenes() []scene {
	return []scene{{
		act:   "A page is made once",
		title: "a first request: a miss",
		run:   func(s *stage) outcome { return s.burst(1, "/catalog/1") },
		checks: func(o outcome) []check {
			return []check{fetches(o, 1), {"the client waited for the origin", o.max() >= cost}, ok(o)}
		},
	}, {
		title: "the same again: a hit",
		run:   func(s *stage) outcome { return s.burst(1, "/catalog/1") },
		checks: func(o outcome) []check {
			return []check{fetches(o, 0), {"faster than the origin", o.max() < cost}, ok(o), every(o, "hit")}
		},
	}, {
		act:   fmt.Sprintf("%d clients at the same moment, nothing cached", crowd),
		title: "without weir",
		run:   func(s *stage) outcome { return s.burst(crowd, "/direct/catalog/2") },
		checks: func(o outcome) []check {
			return []check{fetches(o, crowd), ok(o)}
		},
	}, {
		title: "with weir",
		run:   func(s *stage) outcome { return s.burst(crowd, "/catalog/2") },
		checks: func(o outcome) []check {
			return []check{fetches(o, 1), {"all clients got the same bytes", o.bodies == 1}, ok(o)}
		},
	}}
}

func expiryScenes() []scene {
	// Each lifetime ends once and is begun anew by one fetch; one more at either end of the load.
	most := int(loadTime/lifetime) + 2
	return []scene{{
		act:   fmt.Sprintf("%d requests a second for a page that expires every second", rate),
		title: "without weir",
		run:   func(s *stage) outcome { return s.load("/direct/ticker", rate, loadTime) },
		checks: func(o outcome) []check {
			return []check{fetches(o, o.requests), ok(o)}
		},
	}, {
		title: "with weir",
		run: func(s *stage) outcome {
			s.burst(1, "/ticker") // the show is about expiry, not about the first request
			return s.load("/ticker", rate, loadTime)
		},
		checks: func(o outcome) []check {
			return []check{
				{fmt.Sprintf("the origin saw 2 to %d requests", most), o.fetches >= 2 && o.fetches <= most},
				{"99 of 100 did not wait for the origin", o.p(99) < cost},
				ok(o),
			}
		},
	}}
}

func troubleScenes() []scene {
	stale := func(s *stage, path string) outcome {
		s.pause(expiry)
		return s.burst(smallCrew, path)
	}
	return []scene{{
		act:   fmt.Sprintf("The page has expired, the origin takes %v instead of %v", slowCost, cost),
		title: fmt.Sprintf("with weir: old after %v", softTimeout),
		run: func(s *stage) outcome {
			s.burst(1, "/report")
			s.delay.Store(int64(slowCost))
			defer s.delay.Store(int64(cost))
			return stale(s, "/report")
		},
		checks: func(o outcome) []check {
			return []check{
				fetches(o, 1), ok(o), every(o, "stale"),
				{"nobody waited for the origin", o.max() < slowCost},
				{"all waited for the soft timeout", o.p(0) >= softTimeout},
			}
		},
	}, {
		act:   "The page has expired, the origin is down",
		title: "without weir",
		run: func(s *stage) outcome {
			s.origin.Down()
			return s.burst(smallCrew, "/direct/report")
		},
		checks: func(o outcome) []check {
			return []check{{"all got 503 from Envoy", o.statuses[503] == o.requests}}
		},
	}, {
		title: "with weir: the old page",
		run: func(s *stage) outcome {
			defer s.origin.Up()
			return stale(s, "/report")
		},
		checks: func(o outcome) []check {
			return []check{fetches(o, 0), ok(o), every(o, "stale")}
		},
	}}
}

func fetches(o outcome, want int) check {
	return check{fmt.Sprintf("the origin saw %d, want %d", o.fetches, want), o.fetches == want}
}

func ok(o outcome) check {
	return check{"all got 200", o.statuses[200] == o.requests}
}

// every wants every answer to be of a class, which may be said with more detail ("stale, collapsed").
func every(o outcome, class string) check {
	n := 0
	for c, count := range o.cache {
		if strings.HasPrefix(c, class) {
			n += count
		}
	}
	return check{fmt.Sprintf("%d of %d answers say %s", n, o.requests, class), n == o.requests}
}
