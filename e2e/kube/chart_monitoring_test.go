package kube_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/weirproxy/weir/e2e/harness"
)

// metricNames are those of the data plane, by its reference, and of the controller, by its source.
func metricNames(t *testing.T) (names map[string]bool, reference string) {
	t.Helper()
	names = map[string]bool{}
	for path, pattern := range map[string]string{
		"../../docs/reference/metrics.md": "(?m)^\\| `(weir_\\w+)`",
		"../../controller/metrics.go":     `"(weir_controller_\w+)"`,
	} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, ".md") {
			reference = string(data)
		}
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(data), -1) {
			names[match[1]] = true
		}
	}
	return names, reference
}

// checkExpression holds that an expression asks for metrics that there are, with values that their labels have, and that
// its brackets close. Nothing here parses PromQL whole.
func checkExpression(t *testing.T, where, expression string) {
	t.Helper()
	names, reference := metricNames(t)
	for _, name := range regexp.MustCompile(`weir_\w+`).FindAllString(expression, -1) {
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if !names[name] && !names[base] {
			t.Errorf("%s: there is no metric %s", where, name)
		}
	}
	for _, match := range regexp.MustCompile(`(outcome|result|reason|state|kind)[!=]~?"([^"]*)"`).FindAllStringSubmatch(expression, -1) {
		for value := range strings.SplitSeq(match[2], "|") {
			if prefix, isPrefix := strings.CutSuffix(value, ".*"); isPrefix && strings.Contains(reference, "| `"+prefix) {
				continue
			}
			if !strings.Contains(reference, "| `"+value+"` |") {
				t.Errorf("%s: %s is never %q", where, match[1], value)
			}
		}
	}
	var open []rune
	closes := map[rune]rune{')': '(', '}': '{', ']': '['}
	for _, c := range regexp.MustCompile(`"[^"]*"`).ReplaceAllString(expression, "") {
		switch {
		case strings.ContainsRune("({[", c):
			open = append(open, c)
		case strings.ContainsRune(")}]", c):
			if len(open) == 0 || open[len(open)-1] != closes[c] {
				t.Fatalf("%s: %q closes nothing: %s", where, c, expression)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("%s: %q stays open: %s", where, string(open), expression)
	}
}

// TestAlerts holds that the API server takes the rules, and that each alert asks for what there is and says what to do.
func TestAlerts(t *testing.T) {
	t.Parallel()
	_, err := envtest.InstallCRDs(server.Config, envtest.CRDInstallOptions{
		Paths: []string{harness.PrometheusOperatorCRDs(t)}, MaxTime: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := server.Kubectl(t.Context(), "", "kustomize", "config/alerts")
	if err != nil {
		t.Fatal(err)
	}
	rules := decode(t, "config/alerts", out)
	rules.SetNamespace(server.Namespace(t))
	if err := server.Client.Create(t.Context(), rules.DeepCopy(), dryRun); err != nil {
		t.Error(err)
	}
	groups, _, err := unstructured.NestedSlice(rules.Object, "spec", "groups")
	if err != nil {
		t.Fatal(err)
	}
	alerts := 0
	for _, group := range groups {
		for _, r := range group.(map[string]any)["rules"].([]any) {
			rule := r.(map[string]any)
			name, _ := rule["alert"].(string)
			alerts++
			checkExpression(t, name, rule["expr"].(string))
			says, _ := rule["annotations"].(map[string]any)
			if says["summary"] == nil || says["description"] == nil || rule["labels"] == nil {
				t.Errorf("%s: has no summary, description or severity", name)
			}
		}
	}
	if alerts < 10 {
		t.Errorf("%d alerts", alerts)
	}
}

// TestDashboards holds that what panels ask for exists, and that Grafana's sidecar would find the dashboard.
func TestDashboards(t *testing.T) {
	t.Parallel()
	out, err := server.Kubectl(t.Context(), "", "kustomize", "config/dashboards")
	if err != nil {
		t.Fatal(err)
	}
	configMap := decode(t, "config/dashboards", out)
	text, _, err := unstructured.NestedString(configMap.Object, "data", "weir.json")
	if err != nil || configMap.GetLabels()["grafana_dashboard"] != "1" {
		t.Fatalf("labels %v, %v", configMap.GetLabels(), err)
	}
	var dashboard struct {
		Panels []struct {
			ID          int
			Title, Type string
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(text), &dashboard); err != nil {
		t.Fatal(err)
	}
	ids, graphs := map[int]bool{}, 0
	for _, panel := range dashboard.Panels {
		if ids[panel.ID] {
			t.Errorf("two panels have the number %d", panel.ID)
		}
		ids[panel.ID] = true
		if panel.Type == "row" {
			continue
		}
		graphs++
		if len(panel.Targets) == 0 {
			t.Errorf("panel %q asks for nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			checkExpression(t, panel.Title, target.Expr)
		}
	}
	if graphs < 12 {
		t.Errorf("%d panels", graphs)
	}
}
