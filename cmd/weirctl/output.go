package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// print writes v as JSON, or as text by f.
func (c *cli) print(v any, f func(w io.Writer)) error {
	if c.output == "json" {
		data, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.out, "%s\n", data)
		return err
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	f(w)
	return w.Flush()
}

// seconds shows a number of seconds as a duration.
func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
}

// size shows a number of bytes with a binary unit.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, prefix := float64(n)/unit, 0
	for value >= unit && prefix < len("KMGT")-1 {
		value, prefix = value/unit, prefix+1
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGT"[prefix])
}
