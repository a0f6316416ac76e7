package cluster_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/e2e/harness"
)

// podsOf returns the pods of a component in a namespace that have not ended.
func podsOf(t *testing.T, namespace, component string) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	err := kubernetes.Client.List(t.Context(), &list, client.InNamespace(namespace),
		client.MatchingLabels{"app.kubernetes.io/component": component})
	if err != nil {
		t.Fatalf("list pods: %v", err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	})
}

// readyOf counts the pods that are ready and are to stay.
func readyOf(pods []corev1.Pod) int {
	n := 0
	for _, pod := range pods {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
				n++
			}
		}
	}
	return n
}

// metric returns the sum of a metric over the ready pods of the data plane in a namespace.
func metric(t *testing.T, namespace, name string) float64 {
	t.Helper()
	var sum float64
	for _, pod := range podsOf(t, namespace, dataPlane) {
		if readyOf([]corev1.Pod{pod}) == 1 {
			sum += harness.ReadMetrics(t, "http://"+pod.Status.PodIP+":9090/metrics").Sum(name)
		}
	}
	return sum
}
