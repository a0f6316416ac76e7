package policydir

import (
	"bytes"
	"errors"
	"io"
	"regexp"

	"go.yaml.in/yaml/v3" //nolint:depguard // its nodes know their lines, which sigs.k8s.io/yaml's do not
)

// syntaxError is the error of a file that is not YAML.
func syntaxError(file string, data []byte, err error) FileError {
	// The line that the parser names is where the construct around the fault
	// begins, is one too small, or is missing, depending on the fault.
	text := regexp.MustCompile(`^yaml: (line \d+: )?`).ReplaceAllString(err.Error(), "")
	return FileError{File: file, Line: faultLine(data), Reason: "not YAML: " + text}
}

// faultLine finds the first line that no YAML can go on from: all lines before
// it can be read, and with it no more can.
func faultLine(data []byte) int {
	const (
		probes = 200 // times the data is read
		ahead  = 20  // lines
	)
	var ends []int
	for end := 0; end < len(data); {
		next := bytes.IndexByte(data[end:], '\n')
		if next < 0 {
			next = len(data) - end - 1
		}
		end += next + 1
		ends = append(ends, end)
	}
	left := probes
	good := func(lines int) bool {
		left--
		return lines == 0 || readable(data[:ends[lines-1]])
	}
	low, high := 0, len(ends)
	for left > 0 {
		for high-low > 1 && left > 0 {
			if middle := (low + high) / 2; good(middle) {
				low = middle
			} else {
				high = middle
			}
		}
		// A value over several lines cannot be read before its last one: look
		// whether it goes on well.
		found := false
		for lines := high + 1; lines <= min(high+ahead, len(ends)-1) && left > 0 && !found; lines++ {
			if found = good(lines); found {
				low, high = lines, len(ends)
			}
		}
		if !found {
			break
		}
	}
	return high
}

func readable(data []byte) bool {
	in := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var node yaml.Node
		if err := in.Decode(&node); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}
