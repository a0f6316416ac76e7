// Command app is a workload of the mesh in tests: a server that counts its requests, and a client.
//
//	app serve      answers on :8080 with the number of the request
//	app get URL    prints the status, Cache-Status and the body
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "serve":
		return serve()
	case len(args) == 2 && args[0] == "get":
		return get(args[1])
	}
	return fmt.Errorf("usage: app serve | app get URL")
}

func serve() error {
	var count atomic.Int64
	server := http.Server{Addr: ":8080", ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "answer %d\n", count.Add(1))
		})}
	return server.ListenAndServe()
}

func get(url string) error {
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Get(url) //nolint:noctx // the client has a time limit
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	fmt.Printf("%d\n%s\n", response.StatusCode, response.Header.Get("Cache-Status"))
	_, err = io.Copy(os.Stdout, response.Body)
	return err
}
