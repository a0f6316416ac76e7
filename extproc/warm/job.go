package warm

import (
	"sync"
	"time"
)

// Result says what became of one URL.
type Result int

// The results.
const (
	Stored      Result = iota // fetched, or found unchanged, and stored
	Skipped                   // fresh in the cache already, or being fetched
	Uncacheable               // fetched; the answer may not be stored
	Failed                    // not fetched, or refused
)

// Outcome is a Result with the reason of it where it is not Stored.
type Outcome struct {
	Result Result
	Reason string
	// Retry: neither the URL nor the answer is at fault; it may go better soon.
	Retry bool
}

// State is where a job is.
type State string

// The states of a job.
const (
	Waiting  State = "waiting" // for the jobs before it
	Running  State = "running"
	Done     State = "done"
	Canceled State = "canceled" // the process ends
)

// Job is a list of URLs and how far it is loaded.
type Job struct {
	ID     string `json:"id"`
	Source string `json:"source"` // who asked
	State  State  `json:"state"`
	Total  int    `json:"total"`
	Loaded int    `json:"loaded"` // however it went: the sum of the next four

	Stored      int `json:"stored"`
	Skipped     int `json:"skipped"`
	Uncacheable int `json:"uncacheable"`
	Failed      int `json:"failed"`
	// Faults are the first of those that were not stored, at most MaxFaults.
	Faults []Fault `json:"faults,omitempty"`

	QueuedAt  time.Time `json:"queuedAt"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
}

// MaxFaults bounds Job.Faults.
const MaxFaults = 20

// Fault is a URL that was not stored.
type Fault struct {
	URL    string `json:"url"`
	Reason string `json:"reason"`
}

// Ended reports whether nothing more will come of the job.
func (j *Job) Ended() bool { return j.State == Done || j.State == Canceled }

// job is a Job at work.
type job struct {
	requests []Request // nil once it has ended
	done     chan struct{}

	mu  sync.Mutex
	now Job
}

func (j *job) snapshot() Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.now
	out.Faults = append([]Fault(nil), j.now.Faults...)
	return out
}

// note counts one URL.
func (j *job) note(r *Request, o Outcome) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.now.Loaded++
	switch o.Result {
	case Stored:
		j.now.Stored++
		return
	case Skipped:
		j.now.Skipped++
		return
	case Uncacheable:
		j.now.Uncacheable++
	case Failed:
		j.now.Failed++
	}
	if len(j.now.Faults) < MaxFaults {
		j.now.Faults = append(j.now.Faults, Fault{r.URL(), o.Reason})
	}
}

func (j *job) begins(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.now.State, j.now.StartedAt = Running, now
}

func (j *job) ends(now time.Time) {
	j.mu.Lock()
	j.now.State, j.now.EndedAt = Done, now
	if j.now.Loaded < j.now.Total {
		j.now.State = Canceled
	}
	j.requests = nil
	j.mu.Unlock()
	close(j.done)
}
