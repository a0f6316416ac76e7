package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/cachepolicy"
	"github.com/weirproxy/weir/extproc/policydir"
)

// validation is what validate prints as JSON.
type validation struct {
	Valid    bool                  `json:"valid"`
	Policies int                   `json:"policies"`
	Errors   []policydir.FileError `json:"errors"`
}

func newValidate(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE… | DIRECTORY",
		Short: "Check policy files as weir-extproc does",
		Long: "Check CachePolicy files offline, by the function with which weir-extproc loads them: what\n" +
			"passes here is taken into use there. All files are checked as one set, so that two policies\n" +
			"for one route are found. Each fault is printed as file:line: field: reason.\n\n" +
			"The exit status is 1 if there is any.",
		Example: "  weirctl validate catalog.yaml news.yaml\n" +
			"  weirctl validate /etc/weir/policies\n" +
			"  weirctl validate -o json *.yaml",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return c.validate(args) },
	}
}

func (c *cli) validate(paths []string) error {
	set, faults, err := loadPolicies(paths)
	if err != nil {
		return err
	}
	v := validation{Valid: len(faults) == 0, Errors: faults}
	if v.Errors == nil {
		v.Errors = []policydir.FileError{}
	}
	if set != nil {
		v.Policies = set.Len()
	}
	err = c.print(v, func(w io.Writer) {
		for _, e := range faults {
			fmt.Fprintln(w, e.Error())
		}
		if v.Valid {
			fmt.Fprintf(w, "%s: valid\n", count(v.Policies, "policy", "policies"))
		}
	})
	if err == nil && !v.Valid {
		err = fmt.Errorf("%s: not valid", count(len(faults), "fault", "faults"))
	}
	return err
}

// loadPolicies reads the files, or the one directory, as weir-extproc does.
func loadPolicies(paths []string) (*cachepolicy.Set, []policydir.FileError, error) {
	isDir := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.IsDir()
	}
	if len(paths) == 1 && isDir(paths[0]) {
		set, faults := policydir.Load(paths[0])
		return set, faults, nil
	}
	if slices.ContainsFunc(paths, isDir) {
		return nil, nil, errors.New("give files, or one directory")
	}
	set, faults := policydir.LoadFiles(paths)
	return set, faults, nil
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
