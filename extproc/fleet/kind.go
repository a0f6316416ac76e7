package fleet

// Kind says what an invalidation names.
type Kind uint8

// The kinds of invalidation, as the admin API spells them.
const (
	ByURL       Kind = iota // one URI: scheme://authority/path?query
	ByTag                   // every entry with the tag
	ByHost                  // every entry of the host, as in the URI
	ByPolicy                // every entry stored under the policy: namespace/name
	ByNamespace             // every entry of the namespace
	ByAll                   // every entry
	kinds
)

// String returns the name of k in the admin API.
func (k Kind) String() string {
	switch k {
	case ByURL:
		return "Url"
	case ByTag:
		return "Tag"
	case ByHost:
		return "Host"
	case ByPolicy:
		return "Policy"
	case ByNamespace:
		return "Namespace"
	case ByAll:
		return "All"
	}
	return "Unknown"
}

// ParseKind returns the kind with the given name.
func ParseKind(name string) (Kind, bool) {
	for k := range kinds {
		if k.String() == name {
			return k, true
		}
	}
	return 0, false
}

// Mode says how an invalidation treats what it covers.
type Mode uint8

// The modes of invalidation.
const (
	Hard Mode = iota // never serve it again
	Soft             // serve it as stale
)

// String returns the name of m in the admin API.
func (m Mode) String() string {
	if m == Soft {
		return "Soft"
	}
	return "Hard"
}

// ParseMode returns the mode with the given name.
func ParseMode(name string) (Mode, bool) {
	switch name {
	case "Hard":
		return Hard, true
	case "Soft":
		return Soft, true
	}
	return 0, false
}
