// Command held prints what entries occupy in weir's memory store, as JSON: held ENTRIES BYTES.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/weirproxy/weir/e2e/bench/held"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "held:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: held ENTRIES BYTES")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	size, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	r, err := held.Measure(context.Background(), n, size)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
