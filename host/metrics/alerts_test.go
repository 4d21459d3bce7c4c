package metrics_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jobhost/jobhost/host/metrics"
)

// TestAlerts: the alerts that docs/cluster.md proposes are about metrics that there are.
func TestAlerts(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	m.Cluster(func() metrics.ClusterStatus { return metrics.ClusterStatus{} })
	there := map[string]bool{}
	for _, name := range regexp.MustCompile(`(?m)^jobhost_\w+`).FindAllString(scrape(t, m), -1) {
		there[name] = true
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "cluster.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rules, _ := strings.Cut(string(page), "```yaml\n")
	rules, _, found := strings.Cut(rules, "```\n")
	alerts := regexp.MustCompile(`(?m)^ *- alert: (\w+)\n +expr: (.*)\n +for: \w+\n +annotations:\n +summary: .+$`).FindAllStringSubmatch(rules, -1)
	if !found || len(alerts) != strings.Count(rules, "alert:") || len(alerts) < 6 {
		t.Fatalf("%d alerts are complete of %d", len(alerts), strings.Count(rules, "alert:"))
	}
	for _, a := range alerts {
		names := regexp.MustCompile(`jobhost_\w+`).FindAllString(a[2], -1)
		if len(names) == 0 {
			t.Errorf("%s is about no metric", a[1])
		}
		for _, name := range names {
			if !there[name] {
				t.Errorf("%s: there is no %s", a[1], name)
			}
		}
	}
}

func TestClusterStatus(t *testing.T) {
	t.Parallel()
	m, status := metrics.New(), metrics.ClusterStatus{}
	m.Cluster(func() metrics.ClusterStatus { return status })
	wantLines(t, scrape(t, m), "jobhost_leader 0", "jobhost_leader_reached 0")
	status = metrics.ClusterStatus{Leading: true, Epoch: 7, Standbys: 2, Reaches: true}
	wantLines(t, scrape(t, m), "jobhost_leader 1", "jobhost_leader_reached 1", "jobhost_epoch 7", "jobhost_standbys 2")
}
