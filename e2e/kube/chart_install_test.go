package kube_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/e2e/harness"
	"github.com/weirproxy/weir/e2e/kube"
)

// release is an installation of the chart.
type release struct {
	t               *testing.T
	on              *kube.Server
	name, namespace string
}

func (r *release) helm(args ...string) string {
	r.t.Helper()
	out, err := r.on.Helm(r.t.Context(), append(args, "--namespace", r.namespace)...)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// TestChartLifecycle installs the chart on a real API server, has its Job's command fill the Secrets with the rights of
// the Job's ServiceAccount, upgrades, and uninstalls: nothing is left.
func TestChartLifecycle(t *testing.T) {
	t.Parallel()
	r := &release{t: t, on: server, namespace: server.Namespace(t)}
	r.name = r.namespace + "-weir" // labels find what belongs to it
	values := []string{"--set", "controller.attach={envoy-gateway},extproc.replicaCount=2,extproc.callers=Certificate"}
	r.helm(append([]string{"install", r.name, weirChart, "--dry-run=server"}, values...)...)
	if left := r.objects(); len(left) != 0 {
		t.Errorf("a dry run made %v", left)
	}
	r.helm(append([]string{"install", r.name, weirChart}, values...)...)
	first := r.runJob()
	filled := r.secrets()
	for _, name := range []string{"keys", "ca", "extproc-tls", "controller-tls", "envoy-tls"} {
		if len(filled[r.name+"-"+name]) == 0 {
			t.Errorf("Secret %s-%s is empty", r.name, name)
		}
	}

	r.helm("upgrade", r.name, weirChart, "--reuse-values", "--set", "extproc.replicaCount=3,controller.image.tag=next")
	if diff := cmp.Diff(filled, r.secrets()); diff != "" {
		t.Errorf("the upgrade changed Secrets:\n%s", diff)
	}
	if second := r.runJob(); second == first {
		t.Errorf("the new image has no Job of its own: %s", second)
	}
	if diff := cmp.Diff(filled, r.secrets()); diff != "" {
		t.Errorf("the Job of the upgrade changed Secrets:\n%s", diff)
	}
	r.helm("rollback", r.name, "1")
	if diff := cmp.Diff(filled, r.secrets()); diff != "" {
		t.Errorf("the rollback changed Secrets:\n%s", diff)
	}

	r.helm("uninstall", r.name)
	if left := r.objects(); len(left) != 0 {
		t.Errorf("left after uninstalling: %v", left)
	}
}

// TestChartReleasesStandApart holds that two releases, in two namespaces, do not meet.
func TestChartReleasesStandApart(t *testing.T) {
	t.Parallel()
	for range 2 {
		r := &release{t: t, on: server, namespace: server.Namespace(t), name: "weir"}
		r.helm("install", r.name, weirChart)
	}
}

// runJob runs what the Job's pod would, as its ServiceAccount, and returns the Job's name.
func (r *release) runJob() string {
	r.t.Helper()
	jobs := &batchv1.JobList{}
	if err := r.on.Client.List(r.t.Context(), jobs, client.InNamespace(r.namespace)); err != nil || len(jobs.Items) != 1 {
		r.t.Fatalf("%d Jobs, %v", len(jobs.Items), err)
	}
	pod := jobs.Items[0].Spec.Template.Spec
	command := exec.CommandContext(r.t.Context(), harness.Binary(r.t, "weir-controller"), pod.Containers[0].Args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+r.kubeconfigOf(pod.ServiceAccountName))
	if out, err := command.CombinedOutput(); err != nil {
		r.t.Fatalf("weir-controller %s: %v\n%s", strings.Join(pod.Containers[0].Args, " "), err, out)
	}
	for _, verb := range []string{"list", "create", "delete"} {
		out, _ := r.on.Kubectl(r.t.Context(), "", "auth", "can-i", verb, "secrets", "-n", r.namespace,
			"--as", "system:serviceaccount:"+r.namespace+":"+pod.ServiceAccountName)
		if strings.TrimSpace(out) != "no" {
			r.t.Errorf("the Job may %s Secrets: %s", verb, out)
		}
	}
	return jobs.Items[0].Name
}

// kubeconfigOf returns the path of a kubeconfig with the rights of a ServiceAccount.
func (r *release) kubeconfigOf(account string) string {
	r.t.Helper()
	config, err := clientcmd.LoadFromFile(r.on.Kubeconfig)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = "system:serviceaccount:" + r.namespace + ":" + account
		user.ImpersonateGroups = []string{"system:serviceaccounts", "system:authenticated"}
	}
	path := filepath.Join(r.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// secrets returns what the release's Secrets hold.
func (r *release) secrets() map[string]map[string][]byte {
	r.t.Helper()
	list := &corev1.SecretList{}
	err := r.on.Client.List(r.t.Context(), list, client.InNamespace(r.namespace),
		client.MatchingLabels{"app.kubernetes.io/instance": r.name})
	if err != nil {
		r.t.Fatal(err)
	}
	out := map[string]map[string][]byte{}
	for _, s := range list.Items {
		out[s.Name] = s.Data
	}
	return out
}

// objects returns the names of all objects in the cluster that are the release's, or Helm's records of it.
func (r *release) objects() []string {
	r.t.Helper()
	kinds, err := r.on.Kubectl(r.t.Context(), "", "api-resources", "--verbs=list,delete", "-o", "name")
	if err != nil {
		r.t.Fatal(err)
	}
	all := strings.Join(strings.Fields(kinds), ",")
	var names []string
	for _, selector := range []string{"app.kubernetes.io/instance=" + r.name, "owner=helm,name=" + r.name} {
		out, err := r.on.Kubectl(r.t.Context(), "", "get", all, "-A", "-l", selector, "-o", "json")
		if err != nil {
			r.t.Fatal(err)
		}
		var list struct {
			Items []struct {
				Kind     string
				Metadata struct{ Name string }
			}
		}
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			r.t.Fatal(err)
		}
		for _, o := range list.Items {
			names = append(names, o.Kind+" "+o.Metadata.Name)
		}
	}
	slices.Sort(names)
	return names
}

// TestChartSettingsAreKnown has the programs read the settings that the chart gives them.
func TestChartSettingsAreKnown(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("testdata/chart/*.values.yaml")
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".values.yaml"), func(t *testing.T) {
			t.Parallel()
			for _, o := range rendered(t, "--values", filepath.Join("e2e/kube", file)) {
				component := o.GetLabels()["app.kubernetes.io/component"]
				if o.GetKind() == "ConfigMap" && (component == "extproc" || component == "controller") {
					validate(t, component, o.Object["data"].(map[string]any)["config.yaml"].(string))
				}
			}
		})
	}
}

// validate runs the component's program with --validate, with the files that the chart mounts in a folder of the test.
func validate(t *testing.T, component, config string) {
	t.Helper()
	dir := t.TempDir()
	config = strings.ReplaceAll(config, "/etc/weir", dir)
	ca := harness.NewCA(t)
	root, err := os.ReadFile(ca.File)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"config.yaml": config, "tls/ca.crt": string(root), "redis/ca.crt": string(root), "redis/password": "secret\n",
		"keys/keys":         strings.Repeat("5a", 32) + "\n",
		"policies/all.yaml": "apiVersion: weir.dev/v1alpha1\nkind: CachePolicy\nmetadata: {name: a, namespace: b}\nspec: {}\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ca.Reissue(component, filepath.Join(dir, "tls/tls.crt"), filepath.Join(dir, "tls/tls.key"))
	run := exec.CommandContext(t.Context(), harness.Binary(t, "weir-"+component), "--validate",
		"--config="+filepath.Join(dir, "config.yaml"))
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("weir-%s --validate: %v\n%s\n%s", component, err, out, config)
	}
}
