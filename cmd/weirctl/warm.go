package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/extproc/admin"
)

// warmBatch is how many URLs one request carries.
const warmBatch = 100

func newWarm(c *cli) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "warm [URL…]",
		Short: "Have URLs loaded into the cache",
		Example: "  weirctl warm https://shop.example/ https://shop.example/products\n" +
			"  weirctl warm --file urls.txt",
		RunE: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				fromFile, err := readURLs(file)
				if err != nil {
					return err
				}
				args = append(args, fromFile...)
			}
			if len(args) == 0 {
				return errors.New("give URLs, or --file")
			}
			return c.warm(cmd, args)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "`file` with URLs, one a line; # begins a comment")
	return cmd
}

func readURLs(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--file: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	var urls []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" && !strings.HasPrefix(line, "#") {
			urls = append(urls, line)
		}
	}
	return urls, lines.Err()
}

// warm hands the URLs over in batches, with a bar where somebody looks.
func (c *cli) warm(cmd *cobra.Command, urls []string) error {
	a, err := c.client()
	if err != nil {
		return err
	}
	bar := newBar(c.err, len(urls))
	total := admin.WarmResult{}
	for sent := 0; sent < len(urls); {
		batch := urls[sent:min(sent+warmBatch, len(urls))]
		var r admin.WarmResult
		if err := a.post(cmd.Context(), "/v1/warm", admin.WarmRequest{URLs: batch}, &r); err != nil {
			bar.end()
			return err
		}
		total.Accepted += r.Accepted
		total.Refused = append(total.Refused, r.Refused...)
		sent += len(batch)
		bar.show(sent)
	}
	bar.end()
	err = c.print(total, func(w io.Writer) {
		fmt.Fprintf(w, "accepted\t%d\n", total.Accepted)
		for _, r := range total.Refused {
			fmt.Fprintf(w, "refused\t%s: %s\n", r.URL, r.Reason)
		}
	})
	if n := len(total.Refused); n > 0 {
		err = cmp.Or(err, fmt.Errorf("%s refused", count(n, "URL was", "URLs were")))
	}
	return err
}

// bar is a progress bar on a terminal; elsewhere it shows nothing.
type bar struct {
	w     io.Writer // nil: no terminal
	total int
}

func newBar(w io.Writer, total int) *bar {
	f, ok := w.(*os.File)
	if !ok {
		return &bar{}
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return &bar{}
	}
	return &bar{w, total}
}

func (b *bar) show(done int) {
	if b.w == nil {
		return
	}
	const width = 40
	full := width * done / b.total
	fmt.Fprintf(b.w, "\r[%s%s] %d/%d", strings.Repeat("#", full), strings.Repeat(".", width-full), done, b.total)
}

func (b *bar) end() {
	if b.w != nil {
		fmt.Fprintln(b.w)
	}
}
