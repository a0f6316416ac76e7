package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/extproc/admin"
)

func newInvalidate(c *cli) *cobra.Command {
	var soft, requireAll bool
	var namespace string
	cmd := &cobra.Command{
		Use:   "invalidate {url|tag|host|policy|namespace|all} [VALUE]",
		Short: "Make stored answers invalid",
		Long: "Make stored answers invalid: never served again, or with --soft stale from now on. It beats\n" +
			"every fetch that began before, also one that ends later.\n\n" +
			"It holds once weir-extproc has answered: replicas that have not confirmed it do so before they\n" +
			"serve by Redis again. So the exit status is 0 even then; with --require-all it is 1 unless every\n" +
			"replica has confirmed, and without Redis, where others cannot be known.",
		Example: "  weirctl invalidate url https://shop.example/products?id=7\n" +
			"  weirctl invalidate tag product-7 --namespace shop\n" +
			"  weirctl invalidate host shop.example --soft\n" +
			"  weirctl invalidate policy shop/catalog\n" +
			"  weirctl invalidate all",
		Args:      cobra.RangeArgs(1, 2),
		ValidArgs: []string{"url", "tag", "host", "policy", "namespace", "all"},
		RunE: func(cmd *cobra.Command, args []string) error {
			r := admin.InvalidateRequest{Namespace: namespace, Mode: admin.ModeHard}
			var ok bool
			if r.By, ok = kindOf(args[0]); !ok {
				return fmt.Errorf("%q: want url, tag, host, policy, namespace or all", args[0])
			}
			if len(args) > 1 {
				r.Value = args[1]
			}
			if soft {
				r.Mode = admin.ModeSoft
			}
			return c.invalidate(cmd, r, requireAll)
		},
	}
	cmd.Flags().BoolVar(&soft, "soft", false, "stale from now on, rather than never served again")
	cmd.Flags().BoolVar(&requireAll, "require-all", false, "fail unless every replica is known to have confirmed")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of what is named")
	return cmd
}

// kindOf returns the API's name of what is invalidated by.
func kindOf(name string) (string, bool) {
	kinds := []string{admin.ByURL, admin.ByTag, admin.ByHost, admin.ByPolicy, admin.ByNamespace, admin.ByAll}
	for _, by := range kinds {
		if strings.EqualFold(by, name) {
			return by, true
		}
	}
	return "", false
}

func (c *cli) invalidate(cmd *cobra.Command, r admin.InvalidateRequest, requireAll bool) error {
	a, err := c.client()
	if err != nil {
		return err
	}
	var result admin.InvalidateResult
	if err := a.post(cmd.Context(), "/v1/invalidate", r, &result); err != nil {
		return err
	}
	if err := c.print(result, func(w io.Writer) { printInvalidation(w, &result) }); err != nil {
		return err
	}
	if requireAll && !result.Certain {
		return fmt.Errorf("not every replica is known to have confirmed: %s", result.Covers)
	}
	return nil
}

func printInvalidation(w io.Writer, r *admin.InvalidateResult) {
	fmt.Fprintf(w, "invalidated\t%s\n", strings.TrimSpace(r.By+" "+r.Value))
	fmt.Fprintf(w, "mode\t%s\n", r.Mode)
	fmt.Fprintf(w, "covers\t%s\n", r.Covers)
	fmt.Fprintf(w, "confirmed\t%d of %d replicas, in %s\n", r.Confirmed, r.Replicas, seconds(r.TookSeconds))
	least := ""
	if r.MatchedAtLeast {
		least = "at least "
	}
	fmt.Fprintf(w, "names\t%s%d entries in this process's memory\n", least, r.Matched)
	fmt.Fprintf(w, "position\t%d\n", r.Position)
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "note\t%s\n", warning)
	}
}
