package policydir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/weirproxy/weir/cachepolicy"
)

// Bounds of what is read.
const (
	MaxFileSize  = 1 << 20  // bytes of one file
	MaxTotalSize = 64 << 20 // bytes of all files together
	MaxFiles     = 10_000
)

// source is the content of one file, or why it could not be read.
type source struct {
	name string // as errors show it
	data []byte
	err  error
}

// LoadFiles reads policy files and returns the set they make: all of it, or, if
// anything in any file is at fault, none, with the faults in the order of the
// files and lines. Policies are bound as standalone mode binds them, to
// EnvoyRoutes and by name.
func LoadFiles(paths []string) (*cachepolicy.Set, []FileError) {
	return compile(read(paths, paths))
}

// read reads the files; errors show them by the names given. Beyond a bound there
// is only that to say: nothing is compiled.
func read(paths, names []string) []source {
	var out []source
	total := 0
	for i, path := range paths {
		if i == MaxFiles {
			return []source{{name: names[i], err: fmt.Errorf("there are more than %d files", MaxFiles)}}
		}
		data, err := readFile(path)
		if total += len(data); total > MaxTotalSize {
			return []source{{name: names[i],
				err: fmt.Errorf("the files are larger than %d MiB together", MaxTotalSize>>20)}}
		}
		out = append(out, source{name: names[i], data: data, err: err})
	}
	return out
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path) // before opening: to open a named pipe is to wait for its writer
	if err != nil {
		return nil, reason(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("must be a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, reason(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(io.LimitReader(f, MaxFileSize+1))
	if err != nil {
		return nil, reason(err)
	}
	if len(data) > MaxFileSize {
		return nil, errors.New("must not be larger than " + strconv.Itoa(MaxFileSize>>20) + " MiB")
	}
	return data, nil
}

// reason is the error without the path, which stands before it already.
func reason(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("cannot be read: %w", pathErr.Err)
	}
	return fmt.Errorf("cannot be read: %w", err)
}

// compile makes the set of all documents of all files.
func compile(sources []source) (*cachepolicy.Set, []FileError) {
	var errs []FileError
	var bindings []cachepolicy.Binding
	docs := map[*cachepolicy.Policy]*Document{}
	for _, src := range sources {
		if src.err != nil {
			errs = append(errs, FileError{File: src.name, Reason: src.err.Error()})
			continue
		}
		found, faults := Decode(src.name, src.data)
		errs = append(errs, faults...)
		for _, doc := range found {
			policy, faults := doc.compile()
			errs = append(errs, faults...)
			if policy == nil {
				continue
			}
			docs[policy] = doc
			bindings = append(bindings, cachepolicy.StandaloneBindings(policy, &doc.Policy.Spec)...)
		}
	}
	set, err := cachepolicy.NewSet(bindings...)
	errs = append(errs, conflicts(err, docs)...)
	if len(errs) > 0 {
		return nil, bound(errs)
	}
	return set, nil
}

func (d *Document) compile() (*cachepolicy.Policy, []FileError) {
	spec := &d.Policy.Spec
	errs := append(cachepolicy.Validate(spec), cachepolicy.Unsupported(spec)...)
	if len(errs) > 0 {
		return nil, d.located(errs)
	}
	policy, err := cachepolicy.Compile(d.Policy.Namespace, d.Policy.Name, spec)
	var fields cachepolicy.FieldErrors
	switch {
	case errors.As(err, &fields):
		return nil, d.located(fields)
	case err != nil:
		return nil, []FileError{{File: d.File, Line: d.Line(""), Reason: err.Error()}}
	}
	return policy, nil
}

// conflicts gives each conflict the place of the later policy, and says where
// the earlier one stands.
func conflicts(err error, docs map[*cachepolicy.Policy]*Document) []FileError {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return nil
	}
	var out []FileError
	for _, err := range joined.Unwrap() {
		var conflict *cachepolicy.ConflictError
		if !errors.As(err, &conflict) {
			continue
		}
		first, second := docs[conflict.First.Policy], docs[conflict.Second.Policy]
		path := second.target(conflict.Route)
		out = append(out, FileError{File: second.File, Line: second.Line(path), Path: path,
			Reason: fmt.Sprintf("%s (the other is at %s:%d)", err, first.File, first.Line(first.target(conflict.Route)))})
	}
	return out
}

// target is the path of the field that binds the policy to a route; without a
// route, of its name.
func (d *Document) target(route string) string {
	for i := range d.Policy.Spec.TargetRefs {
		if string(d.Policy.Spec.TargetRefs[i].Name) == route {
			return "spec.targetRefs[" + strconv.Itoa(i) + "].name"
		}
	}
	return "metadata.name"
}
