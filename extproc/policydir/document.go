package policydir

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3" //nolint:depguard // its nodes know their lines, which sigs.k8s.io/yaml's do not
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/cachepolicy/v1alpha1"
)

// DefaultNamespace is the namespace of a policy whose metadata names none.
const DefaultNamespace = "default"

// Document is one CachePolicy of a file, and where its fields stand.
type Document struct {
	File   string
	Policy *v1alpha1.CachePolicy
	lines  map[string]int // field path → line
}

// Line returns the line of the field with the path, or of the nearest field
// around it that is written out.
func (d *Document) Line(path string) int {
	for {
		if line, ok := d.lines[path]; ok {
			return line
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return d.lines[""]
		}
		path = path[:cut]
	}
}

// Decode reads the CachePolicies of a file (YAML, any number of documents)
// strictly: an unknown or doubled field, a value of the wrong kind and another
// kind of object are errors. It checks the form and the metadata; what the spec
// says is for cachepolicy.Validate. Documents with an error are left out.
func Decode(file string, data []byte) ([]*Document, []FileError) {
	var docs []*Document
	var errs []FileError
	in := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var node yaml.Node
		err := in.Decode(&node)
		if errors.Is(err, io.EOF) {
			return docs, errs
		}
		if err != nil {
			return docs, append(errs, syntaxError(file, data, err))
		}
		if len(node.Content) == 0 || node.Content[0].ShortTag() == "!!null" {
			continue // an empty document
		}
		doc, docErrs := decodeDocument(file, node.Content[0])
		errs = append(errs, docErrs...)
		if len(docErrs) == 0 {
			docs = append(docs, doc)
		}
	}
}

func decodeDocument(file string, root *yaml.Node) (*Document, []FileError) {
	doc := &Document{File: file, Policy: &v1alpha1.CachePolicy{}, lines: map[string]int{"": root.Line}}
	if errs := doc.checkKind(root); len(errs) > 0 {
		return nil, doc.located(errs)
	}
	w := &walker{file: file, lines: doc.lines}
	value := w.value(root, reflect.TypeFor[v1alpha1.CachePolicy](), "")
	if len(w.errs) > 0 {
		return nil, w.errs
	}
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, doc.Policy)
	}
	if err != nil {
		return nil, []FileError{{File: file, Line: root.Line, Reason: err.Error()}}
	}
	return doc, doc.located(doc.checkMetadata())
}

// checkKind comes first: of another kind of object nothing else is worth saying.
func (d *Document) checkKind(root *yaml.Node) []cachepolicy.FieldError {
	const want = v1alpha1.GroupName + "/" + v1alpha1.Version
	if root.Kind != yaml.MappingNode {
		return []cachepolicy.FieldError{{Path: "", Reason: "must be a " + v1alpha1.Kind + " object"}}
	}
	found := map[string]string{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key := root.Content[i].Value
		if _, twice := found[key]; !twice {
			found[key] = root.Content[i+1].Value
			d.lines[key] = root.Content[i].Line
		}
	}
	if kind := found["kind"]; kind != v1alpha1.Kind {
		return []cachepolicy.FieldError{{Path: "kind", Reason: quote(kind) + ": must be " + v1alpha1.Kind +
			"; files in a policy directory hold nothing else"}}
	}
	if version := found["apiVersion"]; version != want {
		return []cachepolicy.FieldError{{Path: "apiVersion", Reason: quote(version) + ": must be " + want}}
	}
	return nil
}

func (d *Document) checkMetadata() []cachepolicy.FieldError {
	meta := &d.Policy.ObjectMeta
	if meta.Namespace == "" {
		meta.Namespace = DefaultNamespace
	}
	var errs []cachepolicy.FieldError
	if meta.Name == "" {
		errs = append(errs, cachepolicy.FieldError{Path: "metadata.name", Reason: "must be set"})
	} else if faults := validation.IsDNS1123Subdomain(meta.Name); len(faults) > 0 {
		errs = append(errs, cachepolicy.FieldError{Path: "metadata.name",
			Reason: quote(meta.Name) + ": must be up to 253 lower case letters, digits, '-' or '.'" +
				", with a letter or digit at both ends"})
	}
	if faults := validation.IsDNS1123Label(meta.Namespace); len(faults) > 0 {
		errs = append(errs, cachepolicy.FieldError{Path: "metadata.namespace",
			Reason: quote(meta.Namespace) + ": must be up to 63 lower case letters, digits or '-'" +
				", with a letter or digit at both ends"})
	}
	return errs
}
