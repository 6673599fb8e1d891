// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/test/container"
)

func TestMain(m *testing.M) { os.Exit(container.Main(m)) }

// begin a Database with a table to write to.
func begin(t *testing.T, c *cluster, letters ...string) {
	t.Helper()
	for _, l := range letters {
		c.start(l)
	}
	took := c.eventually("all members are ready", 90*time.Second, func() bool { return c.ready(letters...) })
	t.Logf("%d members ready after %s", len(letters), took)
	leader := c.leader()
	var err error
	c.eventually("the platform can log in", 20*time.Second, func() bool {
		conn, e := c.connect(t.Context(), leader, "postgres")
		if err = e; e != nil {
			return false
		}
		defer func() { _ = conn.Close(context.Background()) }()
		_, err = conn.Exec(t.Context(), "create database shop")
		return err == nil
	})
	conn, err := c.connect(t.Context(), leader, "shop")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), "create table public.ledger (id bigint primary key)"); err != nil {
		t.Fatal(err)
	}
}

func TestThreeMembers(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	w := c.write()
	w.goesOn(10 * time.Second)
	w.reset()
	first := c.leader()
	for l, p := range c.pods() {
		want := v1alpha1.RoleLabelReplica
		if l == first {
			want = v1alpha1.RoleLabelLeader
		}
		if got := p.Labels[v1alpha1.LabelRole]; got != want {
			t.Errorf("pod of %s has the role %q, want %q", l, got, want)
		}
		if _, ok := p.Annotations[pods.AnnotationVolume]; ok {
			t.Errorf("pod of %s still tells what its volume held before", l)
		}
	}
	for _, step := range []struct {
		name string
		do   func(*testing.T, *cluster, *writer)
	}{
		{"Managed", managedRoles},
		{"Handover", handOver},
		{"GracefulStop", gracefulStop},
		{"APIServerDown", apiServerDown},
		{"CertificateRenewed", certificateRenewed},
		{"PatroniFrozen", patroniFrozen},
		{"EverythingFrozen", everythingFrozen},
		{"PostmasterKilled", postmasterKilled},
		{"LeaderFrozen", leaderFrozen},
		{"LeaderKilled", leaderKilled},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			c.t = t
			c.eventually("all members are ready", time.Minute, func() bool { return c.ready("a", "b", "c") })
			c.eventually("commits wait for another member", time.Minute, c.synchronous)
			w.goesOn(10 * time.Second)
			w.reset()
			step.do(t, c, w)
		}) {
			t.Log(w.failures())
		}
	}
	c.t = t
	w.check(t)
	c.oneLeader()
	c.labelFollowsLock()
	c.onePromotion()
}

// within fails the test when a gap in writing is longer. With more to do than processors the machine takes longer for all of it,
// and gets as much longer.
func within(t *testing.T, w *writer, limit time.Duration) {
	t.Helper()
	gap, failed := w.reset()
	var load float64
	raw, _ := os.ReadFile("/proc/loadavg")
	_, _ = fmt.Sscan(string(raw), &load)
	t.Logf("longest gap in writing: %s, %d tries failed, load %.1f on %d processors", gap, failed, load, runtime.NumCPU())
	limit = time.Duration(float64(limit) * max(1, load/float64(runtime.NumCPU())))
	if gap > limit {
		t.Errorf("writes stood still for %s, want %s at most", gap, limit)
	}
}

// synchronous reports whether a commit waits for one of all other members: who leads next must not have to wait for the last
// leader.
func (c *cluster) synchronous() bool {
	cm, err := c.client.CoreV1().ConfigMaps(c.ns).Get(c.t.Context(), scope+"-sync", metav1.GetOptions{})
	others := strings.FieldsFunc(cm.Annotations["sync_standby"], func(r rune) bool { return r == ',' })
	first := 0 // members of the first generation, which this is about
	for _, l := range c.letters {
		if !strings.Contains(l, "-") {
			first++
		}
	}
	return err == nil && len(others) == first-1 && strings.HasPrefix(cm.Annotations["leader"], database+"-"+c.leader())
}

// managedRoles: the platform has a login that is no superuser, nobody else gets into PostgreSQL's own databases, and an extension
// that is not trusted is there.
func managedRoles(t *testing.T, c *cluster, _ *writer) {
	t.Helper()
	c.eventually("the extension is there", 40*time.Second, func() bool {
		conn, err := c.connect(t.Context(), c.leader(), "shop")
		if err != nil {
			return false
		}
		defer func() { _ = conn.Close(context.Background()) }()
		var n int
		return conn.QueryRow(t.Context(), "select count(*) from pg_extension where extname = 'pg_stat_statements'").Scan(&n) == nil && n == 1
	})
	conn, err := c.connect(t.Context(), c.leader(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for query, want := range map[string]string{
		"select rolsuper::text || rolcreaterole::text || rolcreatedb::text || rolreplication::text from pg_roles where rolname = 'capstan'": "falsetruetruefalse",
		"select has_database_privilege('public', 'postgres', 'connect')::text":                                                              "false",
		"select has_database_privilege('exporter', 'postgres', 'connect')::text":                                                            "true",
		"select pg_has_role('exporter', 'pg_monitor', 'member')::text":                                                                      "true",
		"select current_setting('search_path')":                                                                                             "pg_catalog",
		"select nspname::text from pg_extension e join pg_namespace n on n.oid = e.extnamespace where extname = 'pg_stat_statements'":       "extensions",
		"select count(*)::text from pg_extension where extname = 'hstore'":                                                                  "0",
		"select current_setting('ssl') || current_setting('data_checksums')":                                                                "onon",
	} {
		var got string
		if err := conn.QueryRow(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: got %q (%v), want %q", query, got, err, want)
		}
	}
}

// handOver as the kubelet's hook does it, without a stop.
func handOver(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	for range 3 {
		c.eventually("the members are well", time.Minute, func() bool { return c.ready("a", "b", "c") && c.synchronous() })
		w.reset()
		before := c.leader()
		out, err := c.running(before).Enter("/usr/local/bin/capstan-member", "handover")
		t.Logf("%s", out)
		if err != nil {
			t.Fatal(err)
		}
		w.goesOn(10 * time.Second)
		within(t, w, 2*time.Second)
		if c.leader() == before {
			t.Errorf("%s still leads", before)
		}
	}
	// A replica has nothing to hand over.
	now := c.leader()
	other := "a"
	if now == other {
		other = "b"
	}
	if out, err := c.running(other).Enter("/usr/local/bin/capstan-member", "handover"); err != nil || c.leader() != now {
		t.Errorf("a replica's hook changed the leader to %s: %v: %s", c.leader(), err, out)
	}
}

// gracefulStop of the leader, as when its pod is deleted, and its start.
func gracefulStop(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	before := c.leader()
	c.running(before).Terminate(true)
	w.goesOn(10 * time.Second)
	within(t, w, 2*time.Second)
	c.start(before)
}

// postmasterKilled: PostgreSQL comes up again in place, and Patroni does not wait for its next turn.
func postmasterKilled(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	for range 3 {
		// One that is killed while it starts is another case: Patroni gives the lead up then.
		c.eventually("the members are well", time.Minute, func() bool { return c.ready("a", "b", "c") && c.synchronous() })
		time.Sleep(5 * time.Second)
		w.reset()
		before := c.leader()
		if err := syscall.Kill(c.running(before).Child("postgres"), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
		w.goesOn(time.Minute)
		within(t, w, 3*time.Second)
		if c.leader() != before {
			t.Errorf("%s leads, and %s led before", c.leader(), before)
		}
	}
}

// patroniFrozen: the supervisor starts it again, and PostgreSQL does not go on without it.
func patroniFrozen(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	before := c.leader()
	r := c.running(before)
	n := r.Signal(syscall.SIGSTOP, func(p process.Process) bool { return p.Name == "patroni" })
	if n == 0 {
		t.Fatal("found no Patroni")
	}
	took := c.eventually("no process is frozen", time.Minute, func() bool {
		return !slices.ContainsFunc(r.Processes(), func(p process.Process) bool { return p.Stopped })
	})
	t.Logf("ended after %s", took)
	c.eventually("the member is ready again", 90*time.Second, func() bool { return c.probe(before, "/readyz") == nil })
	// The lock may have run out a moment earlier: then another leads.
	t.Logf("%s led before and %s leads", before, c.leader())
	within(t, w, 5*time.Second)
}

// everythingFrozen: the supervisor does not leave a frozen PostgreSQL to the next Patroni, which would lead and wait for it.
func everythingFrozen(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	before := c.leader()
	r := c.running(before)
	if n := r.Signal(syscall.SIGSTOP, func(p process.Process) bool { return p.PID != r.PID() }); n == 0 {
		t.Fatal("found no process")
	}
	took := c.eventually("no process is frozen", time.Minute, func() bool {
		return !slices.ContainsFunc(r.Processes(), func(p process.Process) bool { return p.Stopped })
	})
	t.Logf("ended after %s", took)
	c.eventually("the member is ready again", 2*time.Minute, func() bool { return c.probe(before, "/readyz") == nil })
	w.goesOn(time.Minute)
	t.Logf("%s led before and %s leads", before, c.leader())
}

// apiServerDown: nothing else is wrong, so clients notice nothing.
func apiServerDown(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	before := c.leader()
	c.api.set(true)
	defer c.api.set(false)
	unwell := map[string]int{}
	for begun := time.Now(); time.Since(begun) < 45*time.Second; time.Sleep(time.Second) {
		for _, l := range []string{"a", "b", "c"} {
			for _, path := range []string{"/livez", "/readyz"} {
				if err := c.probe(l, path); err != nil {
					unwell[l+path+": "+err.Error()]++
				}
			}
		}
	}
	if len(unwell) > 0 {
		t.Errorf("probes failed: %v", unwell)
	}
	gap, failed := w.reset()
	t.Logf("longest gap in writing: %s, %d tries failed", gap, failed)
	if failed > 0 {
		t.Errorf("%d writes failed, want none", failed)
	}
	c.api.set(false)
	time.Sleep(6 * time.Second)
	if c.leader() != before {
		t.Errorf("%s leads, and %s led before", c.leader(), before)
	}
}

// certificateRenewed: the new one is served within seconds, and connections last.
func certificateRenewed(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	serial := func(port int) string {
		out, _ := c.running(c.leader()).Enter("sh", "-c", fmt.Sprintf("openssl s_client -connect %s %s </dev/null 2>/dev/null | openssl x509 -noout -serial",
			c.identify(c.leader()).Address(port), map[int]string{pgmember.PortPostgres: "-starttls postgres"}[port]))
		return strings.TrimSpace(out)
	}
	before := map[int]string{pgmember.PortPostgres: serial(pgmember.PortPostgres), pgmember.PortPatroni: serial(pgmember.PortPatroni)}
	w.mu.Lock()
	conns := w.conns
	w.mu.Unlock()
	c.certificate()
	for port, was := range before {
		took := c.eventually(fmt.Sprintf("port %d serves the new certificate", port), 40*time.Second, func() bool {
			now := serial(port)
			return strings.HasPrefix(now, "serial=") && now != was
		})
		t.Logf("port %d after another %s", port, took)
	}
	gap, failed := w.reset()
	w.mu.Lock()
	defer w.mu.Unlock()
	t.Logf("longest gap in writing: %s", gap)
	if failed > 0 || w.conns != conns {
		t.Errorf("%d writes failed and %d connections were made again, want none", failed, w.conns-conns)
	}
}

// leaderFrozen with all that belongs to it: another leads when the lock has run out, and the old one follows when it thaws.
func leaderFrozen(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	before := c.leader()
	r := c.running(before)
	r.Signal(syscall.SIGSTOP, nil)
	took := c.eventually("another member leads", 60*time.Second, func() bool { return c.leader() != before && c.leader() != "" })
	t.Logf("another leads after %s", took)
	w.goesOn(10 * time.Second)
	within(t, w, 35*time.Second)
	now := c.leader()
	r.Signal(syscall.SIGCONT, nil)
	c.eventually("the old leader follows", time.Minute, func() bool {
		return c.probe(before, "/readyz") == nil && c.pods()[before].Labels[v1alpha1.LabelRole] == v1alpha1.RoleLabelReplica
	})
	if c.leader() != now {
		t.Errorf("%s leads, and %s led", c.leader(), now)
	}
	within(t, w, 2*time.Second)
}

// leaderKilled with all that belongs to it, as when its node is lost, and started when another leads.
func leaderKilled(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	before := c.leader()
	c.running(before).Kill()
	took := c.eventually("another member leads", 60*time.Second, func() bool { return c.leader() != before && c.leader() != "" })
	t.Logf("another leads after %s", took)
	w.goesOn(10 * time.Second)
	within(t, w, 35*time.Second)
	c.start(before)
	c.eventually("the old leader follows", time.Minute, func() bool { return c.ready("a", "b", "c") })
}

// TestVolumes: a volume of another Database is refused, and the volumes of a Database that was removed come back with what is on
// them, in whatever order the members start.
func TestVolumes(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	w := c.write()
	w.goesOn(10 * time.Second)
	w.stop()
	w.all.Wait()
	leader := c.leader()
	var others []string
	for _, l := range []string{"a", "b", "c"} {
		if l != leader {
			others = append(others, l)
		}
	}

	// All stop at once, as when the Database is deleted, and what Patroni keeps is removed.
	var all sync.WaitGroup
	for _, l := range []string{"a", "b", "c"} {
		all.Go(func() { c.running(l).Terminate(false) })
	}
	all.Wait()
	remove := func() {
		if err := c.client.CoreV1().ConfigMaps(c.ns).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: v1alpha1.LabelScope + "=" + scope}); err != nil {
			t.Fatal(err)
		}
		for _, l := range []string{"a", "b", "c"} {
			if err := c.client.CoreV1().Pods(c.ns).Delete(t.Context(), c.identify(l).Pod, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
				t.Fatal(err)
			}
		}
		c.compose()
		for _, l := range []string{"a", "b", "c"} {
			c.pod(l)
		}
	}
	remove()
	mark := filepath.Join(c.base, "data-"+others[0], "capstan.json")
	right, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mark, []byte(`{"identity": "0123", "version": "17"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	reason := func(letter string) string {
		var r v1alpha1.MemberReport
		_ = json.Unmarshal([]byte(c.pods()[letter].Annotations[v1alpha1.AnnotationMember]), &r)
		return r.Reason
	}
	r := c.start(others[0])
	c.eventually("a volume of another Database is refused", 20*time.Second, func() bool { return reason(others[0]) == "VolumeOfAnother" })
	if live, ready := c.probe(others[0], "/livez"), c.probe(others[0], "/readyz"); live != nil || ready == nil {
		t.Errorf("the member is live: %v, ready: %v, want live and not ready", live, ready)
	}
	r.Terminate(false)
	if err := os.WriteFile(mark, right, 0o600); err != nil {
		t.Fatal(err)
	}

	// A member without data, and those that followed, wait for the one that led.
	empty := others[1]
	if err := os.RemoveAll(filepath.Join(c.base, "data-"+empty)); err != nil {
		t.Fatal(err)
	}
	c.start(others[0])
	c.start(empty)
	c.eventually("the one that followed waits", 20*time.Second, func() bool { return strings.HasPrefix(reason(others[0]), "WaitingFor") })
	c.eventually("the one without data waits", 20*time.Second, func() bool { return strings.HasPrefix(reason(empty), "WaitingFor") })
	time.Sleep(3 * time.Second)
	if c.leader() != "" {
		t.Errorf("%s leads without the data of the one that led", c.leader())
	}
	c.start(leader)
	took := c.eventually("all members are ready", 90*time.Second, func() bool { return c.ready("a", "b", "c") })
	t.Logf("taken back after %s", took)
	w.check(t)
	for _, l := range []string{"a", "b", "c"} {
		c.eventually("no reason is left", 10*time.Second, func() bool { return reason(l) == "" })
	}

	// The volume of the one that led is lost. A person accepts that.
	leader = c.leader()
	for _, l := range []string{"a", "b", "c"} {
		all.Go(func() { c.running(l).Terminate(false) })
	}
	all.Wait()
	remove()
	if err := os.RemoveAll(filepath.Join(c.base, "data-"+leader)); err != nil {
		t.Fatal(err)
	}
	for _, l := range []string{"a", "b", "c"} {
		c.start(l)
	}
	c.eventually("those that followed wait", 20*time.Second, func() bool {
		return reason(others[0]) == "WaitingForFormerLeader" || reason(others[1]) == "WaitingForFormerLeader"
	})
	time.Sleep(3 * time.Second)
	if c.leader() != "" {
		t.Errorf("%s leads without the data of the one that led", c.leader())
	}
	system := ""
	for _, l := range others {
		if p := c.pods()[l]; system == "" && l != leader {
			var v volume.Content
			_ = json.Unmarshal([]byte(p.Annotations[pods.AnnotationVolume]), &v)
			system = v.System
		}
	}
	body := fmt.Sprintf(`{"metadata":{"annotations":{"initialize":%q}}}`, system)
	if _, err := c.client.CoreV1().ConfigMaps(c.ns).Patch(t.Context(), scope+"-config", types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	took = c.eventually("all members are ready", 90*time.Second, func() bool { return c.ready("a", "b", "c") })
	t.Logf("accepted, all ready after %s", took)
	w.check(t)
	c.oneLeader()
}
