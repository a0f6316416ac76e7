package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/extproc/admin"
)

func newInvalidate(c *cli) *cobra.Command {
	var soft bool
	var namespace string
	cmd := &cobra.Command{
		Use:   "invalidate {url|tag|host|policy|namespace|all} [VALUE]",
		Short: "Make stored answers invalid",
		Long: "Make stored answers invalid: never served again, or with --soft stale from now on. It beats\n" +
			"every fetch that began before, also one that ends later.",
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
			return c.invalidate(cmd, r)
		},
	}
	cmd.Flags().BoolVar(&soft, "soft", false, "stale from now on, rather than never served again")
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

func (c *cli) invalidate(cmd *cobra.Command, r admin.InvalidateRequest) error {
	a, err := c.client()
	if err != nil {
		return err
	}
	var result admin.InvalidateResult
	if err := a.post(cmd.Context(), "/v1/invalidate", r, &result); err != nil {
		return err
	}
	return c.print(result, func(w io.Writer) {
		fmt.Fprintf(w, "invalidated\t%s\n", strings.TrimSpace(result.By+" "+result.Value))
		fmt.Fprintf(w, "mode\t%s\n", result.Mode)
		fmt.Fprintf(w, "position\t%d\n", result.Position)
		fmt.Fprintf(w, "covers\t%s\n", result.Covers)
	})
}
