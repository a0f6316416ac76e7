package extproc

// Stats is what the service holds at one moment. All of it but Marks is zero
// when no request is under way.
type Stats struct {
	Flights int // fetches that others may follow
	Waiters int // requests that follow one
	Marks   int // keys that are not coalesced for the moment
	Refills int // detached fetches that run
}

// Stats returns what the service holds.
func (s *Service) Stats() Stats {
	flights, waiters, marks := s.flights.Stats()
	return Stats{Flights: flights, Waiters: waiters, Marks: marks, Refills: int(s.refills.Load())}
}
