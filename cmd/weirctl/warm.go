package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/extproc/admin"
	"github.com/weirproxy/weir/extproc/warm"
)

// pollInterval is how often a job is asked how far it is.
const pollInterval = 250 * time.Millisecond

// warmOptions are the flags of weirctl warm.
type warmOptions struct {
	file     string
	request  admin.WarmRequest
	noWait   bool
	interval time.Duration
}

func newWarm(c *cli) *cobra.Command {
	o := warmOptions{interval: pollInterval}
	cmd := &cobra.Command{
		Use:   "warm [URL…]",
		Short: "Have URLs loaded into the cache",
		Long: "warm has URLs loaded into the cache, as a request for each would, and waits until that is done.\n" +
			"A file has one URL a line; below it, indented, the header fields that select a variant; behind it,\n" +
			"where there are several, policy=namespace/name or route=name.",
		Example: "  weirctl warm https://shop.example/ https://shop.example/products -H 'Accept-Encoding: gzip'\n" +
			"  weirctl warm --file urls.txt --no-wait",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.request.URLs = args
			if err := o.read(); err != nil {
				return err
			}
			return c.warm(cmd.Context(), &o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.file, "file", "f", "", "`file` with URLs, one a line; # begins a comment")
	f.StringArrayVarP(&o.request.Headers, "header", "H", nil,
		"request `header` of the URLs given as arguments; may be repeated")
	f.StringVar(&o.request.Policy, "policy", "", "`policy` (namespace/name) that these fall under")
	f.StringVar(&o.request.Route, "route", "", "`route` that these fall under, by its name in Envoy")
	f.BoolVar(&o.noWait, "no-wait", false, "return at once, with the job's ID")
	return cmd
}

// read reads the file and checks all of the request, so that faults have the
// file's name and line.
func (o *warmOptions) read() error {
	if o.file != "" {
		data, err := os.ReadFile(o.file)
		if err != nil {
			return fmt.Errorf("--file: %w", err)
		}
		if _, err := warm.ParseFile(o.file, data); err != nil {
			return fmt.Errorf("--file: %w", err)
		}
		o.request.List = string(data)
	}
	if len(o.request.URLs) == 0 && o.file == "" {
		return errors.New("give URLs, or --file")
	}
	if _, err := o.request.Requests(); err != nil {
		if refused, ok := errors.AsType[*admin.Error](err); ok {
			return errors.New(refused.Message)
		}
		return err
	}
	return nil
}

// warm hands the URLs over and, unless told otherwise, follows the job to its end.
func (c *cli) warm(ctx context.Context, o *warmOptions) error {
	a, err := c.client()
	if err != nil {
		return err
	}
	var queued admin.WarmResult
	if err := a.post(ctx, "/v1/warm", o.request, &queued); err != nil {
		return err
	}
	if o.noWait {
		return c.print(queued, func(w io.Writer) {
			fmt.Fprintf(w, "job %s\t%s\n", queued.Job, count(queued.Total, "URL", "URLs"))
		})
	}
	job, err := follow(ctx, a, queued.Job, newProgress(c.err, queued.Total), o.interval)
	if err != nil {
		return fmt.Errorf("job %s goes on, but: %w", queued.Job, err)
	}
	if err := c.print(job, func(w io.Writer) { printJob(w, job) }); err != nil {
		return err
	}
	switch {
	case job.State == warm.Canceled:
		return fmt.Errorf("weir-extproc ends: %d of %s loaded", job.Loaded, count(job.Total, "URL was", "URLs were"))
	case job.Failed > 0:
		return fmt.Errorf("%s could not be loaded", count(job.Failed, "URL", "URLs"))
	}
	return nil
}

// follow shows how far a job is until it has ended.
func follow(ctx context.Context, a *client, id string, p *progress, every time.Duration) (*warm.Job, error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	defer p.end()
	for {
		var got admin.WarmJobs
		if err := a.get(ctx, "/v1/warm", url.Values{"job": {id}}, &got); err != nil {
			return nil, err
		}
		if len(got.Jobs) != 1 {
			return nil, fmt.Errorf("the admin API answered %d jobs for one", len(got.Jobs))
		}
		job := &got.Jobs[0]
		p.show(job.Loaded)
		if job.Ended() {
			return job, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func printJob(w io.Writer, j *warm.Job) {
	fmt.Fprintf(w, "stored\t%d\n", j.Stored)
	fmt.Fprintf(w, "there already\t%d\n", j.Skipped)
	fmt.Fprintf(w, "not cacheable\t%d\n", j.Uncacheable)
	fmt.Fprintf(w, "failed\t%d\n", j.Failed)
	for _, f := range j.Faults {
		fmt.Fprintf(w, "  %s\t%s\n", f.URL, f.Reason)
	}
	if hidden := j.Uncacheable + j.Failed - len(j.Faults); hidden > 0 {
		fmt.Fprintf(w, "  and %d more\n", hidden)
	}
}
