package policydir

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3" //nolint:depguard // its nodes know their lines, which sigs.k8s.io/yaml's do not
	"k8s.io/apimachinery/pkg/api/resource"
)

// walker turns YAML nodes into what encoding/json marshals, checks them against
// the Go type they are for, and notes the line of each field.
type walker struct {
	file  string
	lines map[string]int
	errs  []FileError
}

// add reports a fault of the field that was noted last under the path.
func (w *walker) add(path, reason string) any {
	w.errs = append(w.errs, FileError{File: w.file, Line: w.lines[path], Path: path, Reason: reason})
	return nil
}

// value converts a node; nil if it is null or at fault.
func (w *walker) value(n *yaml.Node, t reflect.Type, path string) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n.Kind == yaml.AliasNode {
		return w.add(path, "*"+n.Value+": must be written out; aliases are not read in policy files")
	}
	if n.ShortTag() == "!!null" {
		return nil
	}
	if t == reflect.TypeFor[resource.Quantity]() {
		return w.quantity(n, path)
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return w.opaque(n, path)
	}
	switch t.Kind() {
	case reflect.Struct:
		return w.object(n, t, path)
	case reflect.Map:
		return w.mapping(n, t, path)
	case reflect.Slice:
		return w.list(n, t, path)
	default:
		return w.scalar(n, t, path)
	}
}

// pairs calls f for each key of a mapping that stands there once.
func (w *walker) pairs(n *yaml.Node, path string, f func(name, path string, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		w.add(path, "must be an object: fields of the form name: value")
		return
	}
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		if line, twice := seen[key.Value]; twice {
			w.errs = append(w.errs, FileError{File: w.file, Line: key.Line, Path: at,
				Reason: "must not stand twice; it is set in line " + strconv.Itoa(line) + " already"})
			continue
		}
		seen[key.Value] = key.Line
		w.lines[at] = key.Line
		f(key.Value, at, value)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (w *walker) object(n *yaml.Node, t reflect.Type, path string) any {
	out := map[string]any{}
	w.pairs(n, path, func(name, at string, value *yaml.Node) {
		field, ok := fieldNamed(t, name)
		if !ok {
			w.add(at, "is not a field"+suggestion(t, name))
			return
		}
		out[name] = w.value(value, field, at)
	})
	return out
}

func (w *walker) mapping(n *yaml.Node, t reflect.Type, path string) any {
	out := map[string]any{}
	w.pairs(n, path, func(name, at string, value *yaml.Node) {
		out[name] = w.value(value, t.Elem(), at)
	})
	return out
}

func (w *walker) list(n *yaml.Node, t reflect.Type, path string) any {
	if n.Kind != yaml.SequenceNode {
		return w.add(path, "must be a list")
	}
	out := make([]any, len(n.Content))
	for i, item := range n.Content {
		at := path + "[" + strconv.Itoa(i) + "]"
		w.lines[at] = item.Line
		if item.ShortTag() == "!!null" {
			w.add(at, "must not be empty")
			continue
		}
		out[i] = w.value(item, t.Elem(), at)
	}
	return out
}

func (w *walker) scalar(n *yaml.Node, t reflect.Type, path string) any {
	if n.Kind != yaml.ScalarNode {
		return w.add(path, "must be a single value, not a list or an object")
	}
	tag := n.ShortTag()
	switch t.Kind() {
	case reflect.String:
		if tag != "!!str" && tag != "!!timestamp" {
			return w.add(path, quote(n.Value)+": must be a string; write it in quotes")
		}
		return n.Value
	case reflect.Int, reflect.Int32, reflect.Int64:
		var v int64
		if tag != "!!int" || n.Decode(&v) != nil || reflect.Zero(t).OverflowInt(v) {
			return w.add(path, quote(n.Value)+": must be a whole number")
		}
		return v
	case reflect.Bool:
		var v bool
		if tag != "!!bool" || n.Decode(&v) != nil {
			return w.add(path, quote(n.Value)+": must be true or false")
		}
		return v
	}
	return w.add(path, "cannot be set in a file")
}

func (w *walker) quantity(n *yaml.Node, path string) any {
	if n.Kind == yaml.ScalarNode {
		if _, err := resource.ParseQuantity(n.Value); err == nil {
			return n.Value
		}
	}
	return w.add(path, quote(n.Value)+": must be a size, such as 512Ki, 1Mi or 1048576")
}

// opaque converts a node whose type reads JSON in its own way.
func (w *walker) opaque(n *yaml.Node, path string) any {
	var v any
	if err := n.Decode(&v); err != nil {
		return w.add(path, err.Error())
	}
	return v
}

// fieldNamed finds the type of a struct's field by its JSON name; the names of
// inlined structs count as the struct's own.
func fieldNamed(t reflect.Type, name string) (reflect.Type, bool) {
	for f := range t.Fields() {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && tag == "" && strings.Contains(options, "inline"):
			if found, ok := fieldNamed(f.Type, name); ok {
				return found, true
			}
		case tag == name && name != "":
			return f.Type, true
		}
	}
	return nil, false
}

// suggestion names the fields there are, or the one that differs only in case.
func suggestion(t reflect.Type, name string) string {
	names := fieldNames(t)
	for _, n := range names {
		if strings.EqualFold(n, name) {
			return "; did you mean " + n + "?"
		}
	}
	const most = 20 // metadata has many, and few of them help here
	if len(names) > most {
		return ""
	}
	return "; there are " + strings.Join(names, ", ")
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for f := range t.Fields() {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && tag == "" && strings.Contains(options, "inline"):
			names = append(names, fieldNames(f.Type)...)
		case tag != "":
			names = append(names, tag)
		}
	}
	return names
}

// quote shows a value in an error, cut to what helps.
func quote(s string) string {
	const most = 64
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}
