// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/hack/internal/controlplane"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

// members of the PostgreSQL.
const members = 3

// A trial hits one PostgreSQL.
type trial struct {
	kubectl

	tool     tool
	command  runCmd
	progress *progress.Printer
	writers  []writer
}

// A writer writes rows from one node.
type writer struct{ pod, node string }

// A fault hits the leader.
type fault struct {
	name string
	// strike returns what reverts the fault, or nil. It is reverted after lasting.
	strike  func(ctx context.Context, leader corev1.Pod) (undo func(context.Context) error, err error)
	lasting time.Duration
	// isolates the node of the leader, whose clients are not counted. kills them.
	isolates, kills bool
}

// create the PostgreSQL, and a writer on each node.
func (r *trial) create(ctx context.Context) error {
	if _, err := r.do(ctx, "", "create", "namespace", r.namespace); err != nil {
		return err
	}
	values := map[string]string{"Postgres": r.image("postgres")}
	if err := r.apply(ctx, r.tool.manifest, values); err != nil {
		return err
	}
	if err := r.until(ctx, "all members follow", r.healthy); err != nil {
		return err
	}
	nodes, err := list[corev1.NodeList](ctx, r.kubectl, "nodes")
	if err != nil {
		return err
	}
	if len(nodes.Items) < members {
		return fmt.Errorf("cannot place %d members: the cluster has %d nodes", members, len(nodes.Items))
	}
	for _, n := range nodes.Items {
		if err := r.write(ctx, n.Name, "writer-"+n.Name); err != nil {
			return err
		}
	}
	return nil
}

func (r *trial) image(name string) string {
	return controlplane.RegistryName + "/capstan-dev/" + name + ":" + r.command.Version
}

// write from a node.
func (r *trial) write(ctx context.Context, node, name string) error {
	err := r.apply(ctx, writerManifest, map[string]string{
		"Name": name, "Node": node, "Image": r.image("demo-database"), "Secret": r.tool.secret, "Authority": r.tool.authority,
	})
	if err != nil {
		return err
	}
	r.writers = append(r.writers, writer{pod: name, node: node})
	return r.until(ctx, name+" writes", func(ctx context.Context) error {
		lines, err := r.lines(ctx, name)
		if err == nil && len(lines) == 0 {
			err = errors.New("it says nothing")
		}
		return err
	})
}

// remove everything, also after an interrupt.
func (r *trial) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := r.do(ctx, "", "delete", "namespace", r.namespace, "--wait=false"); err != nil {
		r.progress.Sayf("the namespace stays: %v", err)
	}
}

// leader is the pod with the label of the leader.
func (r *trial) leader(ctx context.Context) (corev1.Pod, error) {
	found, err := r.pods(ctx, r.tool.leader)
	if err != nil {
		return corev1.Pod{}, err
	}
	if len(found) != 1 {
		return corev1.Pod{}, fmt.Errorf("%d pods are the leader", len(found))
	}
	return found[0], nil
}

// healthy fails until all members are ready and follow a leader that is.
func (r *trial) healthy(ctx context.Context) error {
	found, err := r.pods(ctx, r.tool.members)
	if err != nil {
		return err
	}
	if n := len(slices.DeleteFunc(found, func(p corev1.Pod) bool { return !ready(p) || p.DeletionTimestamp != nil })); n != members {
		return fmt.Errorf("%d of %d members are ready", n, members)
	}
	leader, err := r.leader(ctx)
	if err != nil {
		return err
	}
	out, err := r.shell(ctx, leader, `psql -X -q -t -A -c "select count(*) from pg_stat_replication where state = 'streaming' and sync_state <> 'async'"`)
	if err == nil && strings.TrimSpace(out) != strconv.Itoa(members-1) {
		err = fmt.Errorf("%s members follow %s", strings.TrimSpace(out), leader.Name)
	}
	return err
}

// shell in the container of the server.
func (r *trial) shell(ctx context.Context, p corev1.Pod, script string) (string, error) {
	return r.do(ctx, script, "exec", "-i", p.Name, "--container="+r.tool.container, "--", "sh")
}

// node runs a command of the embedded cluster for the node of a pod.
func (r *trial) node(ctx context.Context, command string, p corev1.Pod) error {
	letter := p.Spec.NodeName[strings.LastIndex(p.Spec.NodeName, "-")+1:]
	if out, err := exec.CommandContext(ctx, r.command.Cluster, command, letter).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot %s node %s: %w: %s", command, letter, err, out)
	}
	return nil
}

func (r *trial) faults() []fault {
	remove := func(ctx context.Context, p corev1.Pod) error {
		_, err := r.do(ctx, "", "delete", "pod", p.Name, "--wait=false")
		return err
	}
	return []fault{
		{name: "pod deleted", strike: func(ctx context.Context, p corev1.Pod) (func(context.Context) error, error) {
			return nil, remove(ctx, p)
		}},
		{name: "server killed", strike: func(ctx context.Context, p corev1.Pod) (func(context.Context) error, error) {
			_, err := r.shell(ctx, p, "kill -KILL $(head -n 1 "+r.tool.data+"/postmaster.pid)")
			return nil, err
		}},
		{name: "operator stopped, then pod deleted", lasting: r.command.Lasting, strike: func(ctx context.Context, p corev1.Pod) (func(context.Context) error, error) {
			undo, err := r.stopManagers(ctx)
			if err != nil {
				return undo, err
			}
			return undo, remove(ctx, p)
		}},
		{name: "node cut off", lasting: r.command.Lasting, isolates: true, strike: func(ctx context.Context, p corev1.Pod) (func(context.Context) error, error) {
			return func(ctx context.Context) error { return r.node(ctx, "rejoin", p) }, r.node(ctx, "cut", p)
		}},
		{name: "node lost", lasting: r.command.Lasting, isolates: true, kills: true, strike: func(ctx context.Context, p corev1.Pod) (func(context.Context) error, error) {
			return func(ctx context.Context) error { return r.node(ctx, "plug", p) }, r.node(ctx, "unplug", p)
		}},
	}
}

// stopManagers of PostgreSQL, and return what starts them again.
func (r *trial) stopManagers(ctx context.Context) (func(context.Context) error, error) {
	k := kubectl{namespace: r.tool.managers}
	all, err := k.deployments(ctx)
	if err != nil {
		return nil, err
	}
	scale := func(ctx context.Context, name string, n int32) error {
		_, err := k.do(ctx, "", "scale", "deployment", name, fmt.Sprintf("--replicas=%d", n))
		return err
	}
	undo := func(ctx context.Context) error {
		var failed error
		for _, d := range all {
			failed = errors.Join(failed, scale(ctx, d.Name, *d.Spec.Replicas))
		}
		return failed
	}
	for _, first := range []bool{true, false} {
		for _, d := range all {
			if slices.Contains(r.tool.first, d.Name) == first {
				if err := scale(ctx, d.Name, 0); err != nil {
					return undo, err
				}
			}
		}
		err := r.until(ctx, "nothing manages PostgreSQL", func(ctx context.Context) error {
			pods, err := k.pods(ctx, "")
			pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool {
				return first && !slices.ContainsFunc(r.tool.first, func(name string) bool { return strings.HasPrefix(p.Name, name+"-") })
			})
			if err == nil && len(pods) > 0 {
				err = fmt.Errorf("%d pods are left, such as %s", len(pods), pods[0].Name)
			}
			return err
		})
		if err != nil {
			return undo, err
		}
	}
	return undo, nil
}

// befall hits the leader with a fault, and returns what its clients saw once all members follow again, or beside an error if they do not.
func (r *trial) befall(ctx context.Context, f fault) (result, error) {
	got := result{Tool: r.command.Tool, Fault: f.name}
	if err := r.until(ctx, "all members follow", r.healthy); err != nil {
		return got, err
	}
	// What settles is not part of the fault.
	if err := sleep(ctx, 10*time.Second); err != nil {
		return got, err
	}
	leader, err := r.leader(ctx)
	if err != nil {
		return got, err
	}
	since := time.Now()
	undo, err := f.strike(ctx, leader)
	if err == nil {
		err = sleep(ctx, max(f.lasting, 20*time.Second))
	}
	if undo != nil {
		// Also after an interrupt, which must not leave a node away.
		err = errors.Join(err, undo(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return got, err
	}
	// What clients saw counts also where members never follow again.
	unhealed := r.until(ctx, "all members follow after "+f.name, r.healthy)
	if unhealed == nil {
		got.Healed = time.Since(since).Seconds()
	}
	writers := r.writers
	r.writers = nil
	for _, w := range writers {
		inside := f.isolates && w.node == leader.Spec.NodeName
		if inside && f.kills {
			if err := r.write(ctx, w.node, w.pod+"-x"); err != nil {
				return got, err
			}
			continue
		}
		r.writers = append(r.writers, w)
		if inside {
			continue
		}
		gap, err := r.longest(ctx, w, since)
		if err != nil {
			return got, err
		}
		got.Gaps = append(got.Gaps, gap)
	}
	r.progress.Sayf("%s: writes stopped for %.1f s, all members follow after %.0f s", f.name, got.Gaps, got.Healed)
	return got, unhealed
}

// until a check passes, as long as that may take.
func (r *trial) until(ctx context.Context, what string, check func(context.Context) error) error {
	said := time.Now()
	for end := time.Now().Add(r.command.Timeout); ; {
		err := check(ctx)
		switch {
		case err == nil:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("cannot see within %s that %s: %w", r.command.Timeout, what, err)
		case time.Since(said) > 30*time.Second:
			said = time.Now()
			r.progress.Sayf("waiting until %s: %v", what, err)
		}
		if err := sleep(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
