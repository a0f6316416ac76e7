package main

import (
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/extproc/admin"
)

// pageLimit is what one request asks for.
const pageLimit = 1000

func newEntries(c *cli) *cobra.Command {
	var limit int
	var host, policy string
	cmd := &cobra.Command{
		Use:   "entries",
		Short: "List what is stored",
		Long: "List stored answers, in an order of no meaning. States: fresh; stale (may be served so);\n" +
			"kept (to be validated with the origin). IN says where: the memory of this process, which is what is\n" +
			"listed, and shared with the fleet.",
		Example: "  weirctl entries --host shop.example\n" +
			"  weirctl entries --policy shop/catalog --limit 0 -o json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := url.Values{}
			if host != "" {
				q.Set("host", host)
			}
			if policy != "" {
				q.Set("policy", policy)
			}
			return c.entries(cmd, q, limit)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 100, "list at most so many; 0: all")
	cmd.Flags().StringVar(&host, "host", "", "only those of this host")
	cmd.Flags().StringVar(&policy, "policy", "", "only those of this policy, `namespace/name`")
	return cmd
}

func (c *cli) entries(cmd *cobra.Command, q url.Values, limit int) error {
	a, err := c.client()
	if err != nil {
		return err
	}
	all := admin.EntriesPage{Entries: []admin.Entry{}}
	for {
		n := pageLimit
		if limit > 0 {
			n = min(n, limit-len(all.Entries))
		}
		q.Set("limit", strconv.Itoa(n))
		var page admin.EntriesPage
		if err := a.get(cmd.Context(), "/v1/entries", q, &page); err != nil {
			return err
		}
		all.Entries = append(all.Entries, page.Entries...)
		all.Next = page.Next
		if page.Next == "" || limit > 0 && len(all.Entries) >= limit {
			break
		}
		q.Set("after", page.Next)
	}
	return c.print(all, func(w io.Writer) { printEntries(w, &all) })
}

func printEntries(w io.Writer, page *admin.EntriesPage) {
	fmt.Fprintln(w, "STATE\tSTATUS\tAGE\tLIFETIME\tBODY\tIN\tPOLICY\tURI")
	for i := range page.Entries {
		e := &page.Entries[i]
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", e.State, e.Status, seconds(float64(e.AgeSeconds)),
			seconds(float64(e.LifetimeSeconds)), size(e.BodyBytes), strings.Join(e.Places, ","), e.Policy, e.URI)
	}
	if page.Next != "" {
		fmt.Fprintln(w, "(there are more; see --limit)")
	}
}
