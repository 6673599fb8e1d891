// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A plugin runs kubectl capstan as people do: kubectl finds it in PATH.
type plugin struct{ namespace, folder string }

func pluginOf(t *testing.T, ns string) plugin {
	t.Helper()
	folder := filepath.Join(os.Getenv("CAPSTAN_ROOT"), "_output", "plugin")
	if _, err := os.Stat(filepath.Join(folder, "kubectl-capstan")); err != nil {
		t.Fatalf("cannot find the plugin: %v: run these tests by `make e2e`", err)
	}

	return plugin{namespace: ns, folder: folder}
}

// try a command line, with what it reads.
func (p plugin) try(t *testing.T, in string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "kubectl", append([]string{"capstan", args[0], "--namespace=" + p.namespace}, args[1:]...)...)
	cmd.Env = append(os.Environ(), "PATH="+p.folder+string(filepath.ListSeparator)+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.CombinedOutput()
	t.Logf("$ kubectl capstan %s\n%s", strings.Join(args, " "), out)

	return string(out), err
}

// run a command line that has to succeed, and that says these words.
func (p plugin) run(t *testing.T, words []string, args ...string) string {
	t.Helper()
	out, err := p.try(t, "", args...)
	if err != nil {
		t.Fatalf("kubectl capstan %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	for _, w := range words {
		if !strings.Contains(out, w) {
			t.Errorf("kubectl capstan %s: want %q in\n%s", strings.Join(args, " "), w, out)
		}
	}

	return out
}

// TestPlugin operates a Database and an Algorithm by the plugin alone.
func TestPlugin(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	p := pluginOf(t, ns)
	d := database(ns, "orders-db", func(d *v1alpha1.Database) {
		d.Spec.Replicas = 2
		d.Spec.Availability.Spread = v1alpha1.SpreadAnywhere
	})
	host := hostOf(ns, "reco")
	reco := func(v string) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", versioned(v), draining(drainSeconds), routed(host), rolling(canary(100), func(l *v1alpha1.Lifecycle) {
			l.Approval = v1alpha1.ApprovalBeforePromotion
		}))
	}
	createDatabase(t, d)
	stable(t, reco("v1"))
	calls := callers(t, ns, "reco", host, outsideKept)

	p.run(t, []string{"Crossplane", "package capstan-dev-function-capstan", "cert-manager"}, "doctor")
	p.run(t, []string{"orders-db", "leader orders-db-", "reco", "Stable"}, "status")
	p.run(t, []string{"Database " + ns + "/orders-db is Running", "2 of 2 members ready", "SyncStandby"}, "status", "orders-db")
	edit(t, reco("v2"))
	t.Run("Database", func(t *testing.T) { p.operatesDatabase(t, d) })
	t.Run("Algorithm", func(t *testing.T) { p.operatesAlgorithm(t, ns) })
	calls.end(t)
}

func (p plugin) operatesDatabase(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	before := leader(t, d)
	if out, err := p.try(t, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (42);", "psql", d.Name, "--consumer=app", "--", "--quiet"); err != nil {
		t.Fatalf("psql: %v\n%s", err, out)
	}
	if out, err := p.try(t, "", "switchover", d.Name); err == nil || !strings.Contains(out, "add --yes") {
		t.Errorf("without a terminal the switchover needs --yes, got %v\n%s", err, out)
	}
	if out, err := p.try(t, "", "switchover", d.Name, "--to="+before.Labels["capstan.dev/member"], "--yes"); err == nil || !strings.Contains(out, "is the leader already") {
		t.Errorf("the leader cannot be the next one, got %v\n%s", err, out)
	}
	p.run(t, []string{"spec:\n  switchover:\n    id: by-git\n"}, "switchover", d.Name, "--id=by-git", "--print")
	p.run(t, []string{"is edited", "Done: member"}, "switchover", d.Name, "--yes", "--wait", "--timeout=2m")
	after := leader(t, d)
	if after.Name == before.Name {
		t.Errorf("%s still leads", after.Name)
	}
	// It finds the new leader, which takes writes, and has what was written before.
	if out := p.run(t, nil, "psql", d.Name, "--consumer=app", "--", "-tAc", "INSERT INTO kept VALUES (43) RETURNING current_user"); !strings.HasPrefix(out, "orders_db_owner\n") {
		t.Errorf("want the role of the consumer app, got %s", out)
	}
	if out := p.run(t, nil, "psql", d.Name, "--", "-tAc", "SELECT sum(n) FROM kept"); strings.TrimSpace(out) != "85" {
		t.Errorf("want the rows of both leaders, got %s", out)
	}
	if out, err := p.try(t, "", "mysql", d.Name); err == nil || !strings.Contains(out, "use kubectl capstan psql") {
		t.Errorf("mysql has no place here, got %v\n%s", err, out)
	}
	if out, err := p.try(t, "", "backup", d.Name); err == nil || !strings.Contains(out, "it has no backups: set spec.backup") {
		t.Errorf("an id does not switch backups on, got %v\n%s", err, out)
	}
	p.run(t, []string{before.Name, after.Name, "promoted"}, "logs", d.Name, "--tail=300")
	p.bundles(t, d)
}

// bundles: the bundle has what helps, and no password.
func (p plugin) bundles(t *testing.T, d *v1alpha1.Database) {
	t.Helper()
	secret, err := get(t.Context(), &corev1.Secret{}, d.Namespace, d.Name+"-app")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	p.run(t, []string{"Read it before you pass it on"}, "support-bundle", d.Name, "--output="+file)
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	zipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var paths strings.Builder
	var all bytes.Buffer
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&paths, "%s %d\n", h.Name, h.Size)
		if _, err := io.Copy(&all, r); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("the bundle has\n%s", paths.String())
	for _, want := range []string{"/xr.yaml", "/composed/statefulset-", "/composed/topology-", "/pods/" + d.Name + "-a-0/postgres.log", "/events.txt", "/status.txt", "/doctor.txt"} {
		if !strings.Contains(paths.String(), want) {
			t.Errorf("the bundle lacks %s", want)
		}
	}
	for key, value := range secret.Data {
		if key == "password" || strings.HasSuffix(key, "uri") {
			if bytes.Contains(all.Bytes(), value) {
				t.Errorf("the bundle has the value of %s", key)
			}
		}
	}
}

func (p plugin) operatesAlgorithm(t *testing.T, ns string) {
	t.Helper()
	within(t, 2*timeout, "it waits for an approval", rollout(ns, "reco", v1alpha1.RolloutHolding, string(v1alpha1.ReasonAwaitingApproval)))
	candidate := rolloutOf(t.Context(), ns, "reco").Candidate
	p.run(t, []string{"Holding", "AwaitingApproval", candidate}, "status", "algorithm", "reco")
	p.run(t, []string{"is edited"}, "pause", "reco", "--wait", "--timeout=1m")
	eventually(t, "it is paused", rollout(ns, "reco", v1alpha1.RolloutHolding, string(v1alpha1.ReasonRolloutPaused)))
	p.run(t, []string{"is paused already"}, "pause", "reco")
	p.run(t, []string{"# Remove spec.rollout.pause."}, "resume", "reco", "--print")
	p.run(t, []string{"is edited"}, "resume", "reco", "--wait", "--timeout=1m")
	p.run(t, []string{"may get all traffic", "is edited"}, "approve", "reco", "--wait", "--timeout=1m")
	p.run(t, []string{"Baking"}, "status", "reco", "--until=Baking,Draining,Stable", "--for=2m")
	eventually(t, "v2 is live", live(ns, "reco", "v2"))

	edit(t, algorithm(ns, "reco", versioned("v3"), draining(drainSeconds), routed(hostOf(ns, "reco")), rolling(canary(100), func(l *v1alpha1.Lifecycle) {
		l.Approval = v1alpha1.ApprovalBeforePromotion
	})))
	eventually(t, "v3 is under test", func(ctx context.Context) error {
		if r := rolloutOf(ctx, ns, "reco"); r.Candidate == candidate || r.Candidate == "" || r.Phase == v1alpha1.RolloutDraining || r.Phase == v1alpha1.RolloutStable {
			return fmt.Errorf("the rollout is %s of %s", r.Phase, r.Candidate)
		}

		return nil
	})
	p.run(t, []string{"without further evidence or approval", "has all traffic"}, "promote", "reco", "--yes", "--wait", "--timeout=2m")
	p.run(t, []string{"reco-"}, "logs", "algorithm/reco", "--tail=5")
}
