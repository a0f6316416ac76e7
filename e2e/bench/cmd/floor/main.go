// Command floor runs one of the servers of e2e/bench/floor: floor KIND BYTES ADDRESS…
package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/weirproxy/weir/e2e/bench/floor"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: floor stock|raw|close BYTES ADDRESS…")
		os.Exit(2)
	}
	size, err := strconv.Atoi(os.Args[2])
	if err == nil {
		err = floor.Serve(floor.Kind(os.Args[1]), size, os.Args[3:], func() { fmt.Println("ready") })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}
