package certs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

const usage = `Usage: weir-controller certs [flags]

Fills Secrets, which must exist, with a CA, with certificates signed by it, and with the keys of --secret-file, and
renews certificates of which less than a third of their life is left. Keys and CA that are there stay.

`

// Main is "weir-controller certs" with these arguments. It asks the API server that the
// pod's ServiceAccount or KUBECONFIG names.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseArgs(args, stdout)
	if errors.Is(err, pflag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	rest, err := config.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("make a scheme: %w", err)
	}
	c, err := client.New(rest, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	done, err := Ensure(ctx, c, o, time.Now())
	for _, what := range done {
		log.Info("Wrote a Secret", "what", what)
	}
	if err != nil {
		return err
	}
	log.Info("All Secrets are as they should be", "written", len(done))
	return nil
}

func parseArgs(args []string, stdout io.Writer) (Options, error) {
	fs := pflag.NewFlagSet("certs", pflag.ContinueOnError)
	fs.SetOutput(stdout)
	fs.Usage = func() { fmt.Fprint(stdout, usage+fs.FlagUsagesWrapped(100)) }
	o := Options{}
	fs.StringVar(&o.Namespace, "namespace", "", "namespace of the Secrets")
	fs.StringVar(&o.CASecret, "ca", "", "Secret of the CA")
	keys := fs.String("keys", "", "`SECRET/KEY` of the keys of --secret-file; empty: not wanted")
	certificates := fs.StringArray("certificate", nil, "`SECRET=HOST,…` of a certificate; may be repeated")
	days := fs.Int("days", 365, "life of certificates")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	o.Life = time.Duration(*days) * 24 * time.Hour
	var faults []error
	if o.Namespace == "" {
		faults = append(faults, errors.New("--namespace: must not be empty"))
	}
	if *days < 1 || *days > 3650 {
		faults = append(faults, errors.New("--days: must be from 1 to 3650"))
	}
	if *keys != "" {
		var ok bool
		if o.KeysSecret, o.KeysKey, ok = strings.Cut(*keys, "/"); !ok || o.KeysSecret == "" || o.KeysKey == "" {
			faults = append(faults, fmt.Errorf("--keys %q: want SECRET/KEY", *keys))
		}
	}
	for _, text := range *certificates {
		name, hosts, _ := strings.Cut(text, "=")
		if name == "" || hosts == "" {
			faults = append(faults, fmt.Errorf("--certificate %q: want SECRET=HOST,…", text))
		}
		o.Certificates = append(o.Certificates, Certificate{Secret: name, Hosts: strings.Split(hosts, ",")})
	}
	if len(o.Certificates) > 0 && o.CASecret == "" {
		faults = append(faults, errors.New("--ca: name the Secret of the CA, which --certificate wants"))
	}
	if fs.NArg() > 0 {
		faults = append(faults, fmt.Errorf("unknown argument %q", fs.Arg(0)))
	}
	return o, errors.Join(faults...)
}
