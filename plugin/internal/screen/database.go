// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/internal/conditions"
)

// Database is what was seen of one at a time.
type Database struct {
	Now    time.Time
	Object v1alpha1.Database
}

// products are the names that people know the engines by.
var products = map[v1alpha1.Engine]string{v1alpha1.EnginePostgres: "PostgreSQL", v1alpha1.EngineMySQL: "MySQL"}

// Phase of the Database, and whether it is about the latest spec.
func (v Database) Phase() (phase string, current bool) {
	return string(v.Object.Status.Phase), synced(v.Object.Status.Conditions, v.Object.Generation)
}

// Line is the Database in one line.
func (v Database) Line() string {
	s := v.Object.Status
	words := []string{fmt.Sprintf("%-10s %d of %d members  leader %s", s.Phase, s.ReadyReplicas, v.Object.Spec.Replicas, orNone(s.Leader))}
	for _, told := range []string{changeOf(s.Change), restoreOf(s.Restore)} {
		if told != "" {
			words = append(words, told)
		}
	}
	for _, c := range conditions.Blocks(s.Conditions) {
		words = append(words, fmt.Sprintf("%s %s", c.Type, c.Reason))
	}

	return strings.Join(words, "  ")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}

	return s
}

// Draw the Database.
func (v Database) Draw(columns int) []string {
	p := &picture{columns: columns}
	d, s := v.Object, v.Object.Status
	p.parts(
		part{bold, fmt.Sprintf("Database %s/%s is ", d.Namespace, d.Name)},
		part{phaseColour(s.Phase) + bold, string(s.Phase)},
		part{"", fmt.Sprintf("  %s %s  %d of %d members ready", products[d.Spec.Engine], s.Version, s.ReadyReplicas, d.Spec.Replicas)},
	)
	if e := s.Endpoints; e != nil {
		p.pair("writes to", e.ReadWrite)
		p.pair("reads from", e.ReadOnly)
		p.pair("poolers", e.Pooler)
		p.pair("from outside", e.External)
	}
	p.members(s)
	if r := s.Resilience; r != nil {
		p.pair("survives", strings.Join(r.Survives, ", "))
		for _, risk := range r.Risks {
			p.wrap(yellow, title("risk"), risk)
		}
	}
	if f := s.LastFailover; f != nil {
		p.pair("new leader", fmt.Sprintf("%s to %s, %s, %s ago", orNone(f.From), f.To, f.Cause, span(v.Now.Sub(f.At.Time))))
	}
	v.backup(p)
	if g := s.Generation; g != nil {
		for _, k := range g.Kept {
			p.pair("kept data", fmt.Sprintf("generation %d, from before %s, until %s", k.Generation, k.Restore, clock(&k.Until)))
		}
	}
	p.pair("change", changeOf(s.Change))
	p.pair("restore", restoreOf(s.Restore))
	if w := s.Switchover; w != nil {
		p.pair("switchover", strings.TrimSpace(fmt.Sprintf("%s: %s %s", w.ID, w.Outcome, w.Message)))
	}
	if w := s.Reinitialize; w != nil {
		p.pair("reinitialize", strings.TrimSpace(fmt.Sprintf("%s of %s: %s %s", w.ID, w.Member, w.Outcome, w.Message)))
	}
	if w := s.Fence; w != nil {
		p.pair("fence", strings.TrimSpace(fmt.Sprintf("%s of %s: %s %s", w.ID, w.Member, w.Outcome, w.Message)))
	}
	p.blocks(s.Conditions)

	return p.lines
}

// backup and what can be restored.
func (v Database) backup(p *picture) {
	b := v.Object.Status.Backup
	if b == nil {
		return
	}
	if b.Last == nil {
		p.pair("backup", "none yet")

		return
	}
	words := strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", b.Last.ID, b.Last.Type, b.Last.Size)), " ")
	if b.Last.At != nil {
		words += ", " + span(v.Now.Sub(b.Last.At.Time)) + " ago"
	}
	p.pair("backup", words)
	if b.EarliestRestorable != nil {
		end := "a minute ago"
		if b.LatestRestorable != nil {
			end = clock(b.LatestRestorable)
		}
		p.pair("restorable", fmt.Sprintf("from %s to %s", clock(b.EarliestRestorable), end))
	}
}

func (p *picture) members(s v1alpha1.DatabaseStatus) {
	if len(s.Members) == 0 {
		return
	}
	wide := len("member")
	for _, m := range s.Members {
		wide = max(wide, len(m.Name))
	}
	format := fmt.Sprintf("%%-%ds  %%-12s %%-10s %%-10s %%-20s %%-16s %%s", wide)
	p.add("", "")
	p.add(faint, fmt.Sprintf(format, "member", "role", "state", "lag", "node", "zone", ""))
	for _, m := range s.Members {
		colour, note := "", ""
		if m.Name == s.Leader {
			colour = green
		}
		if m.State == "Failed" || m.State == "Unknown" || m.State == "Stopped" {
			colour = red
		}
		if !m.Updated {
			note = "to be changed"
		}
		if m.PendingRestart {
			note = "restart pending"
		}
		p.add(colour, strings.TrimRight(fmt.Sprintf(format, m.Name, m.Role, m.State, m.Lag, m.Node, m.Zone, note), " "))
	}
	p.add("", "")
}

func title(words string) string { return fmt.Sprintf("%-14s ", words) }

func (p *picture) pair(name, value string) {
	if value != "" {
		p.wrap("", title(name), value)
	}
}

func changeOf(c *v1alpha1.DatabaseChange) string {
	if c == nil {
		return ""
	}
	words := fmt.Sprintf("%s: %s", c.State, c.Summary)
	if c.Message != "" {
		words += ": " + c.Message
	}

	return words
}

func restoreOf(r *v1alpha1.RestoreStatus) string {
	if r == nil {
		return ""
	}
	words := fmt.Sprintf("%s: %s", r.ID, r.Phase)
	if r.Message != "" {
		words += ": " + r.Message
	}

	return words
}

func clock(t *metav1.Time) string { return t.UTC().Format(time.RFC3339) }

func phaseColour(phase v1alpha1.DatabasePhase) string {
	switch phase {
	case v1alpha1.DatabaseDown, v1alpha1.DatabaseDegraded:
		return red
	case v1alpha1.DatabaseRunning:
		return green
	case v1alpha1.DatabasePending, v1alpha1.DatabaseCreating, v1alpha1.DatabaseUpdating, v1alpha1.DatabaseHibernated:
		return yellow
	default:
		return ""
	}
}

// Table of all Algorithms and Databases of a namespace: what each is, and what blocks it first.
func Table(algorithms []v1alpha1.Algorithm, databases []v1alpha1.Database) [][]string {
	rows := make([][]string, 0, 1+len(algorithms)+len(databases))
	rows = append(rows, []string{"KIND", "NAME", "PHASE", "READY", "DETAIL", "BLOCKED BY"})
	for _, a := range algorithms {
		detail := ""
		if r := a.Status.Rollout; r != nil {
			detail = string(r.Phase)
			if r.Weight > 0 {
				detail += fmt.Sprintf(" %d %%", r.Weight)
			}
		}
		rows = append(rows, []string{"algorithm", a.Name, orNone(string(a.Status.Phase)), fmt.Sprintf("%d/%d", a.Status.ReadyReplicas, a.Status.Replicas), detail, first(conditions.Blocks(a.Status.Conditions))})
	}
	for _, d := range databases {
		rows = append(rows, []string{
			"database", d.Name, orNone(string(d.Status.Phase)), fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, d.Spec.Replicas),
			"leader " + orNone(d.Status.Leader), first(conditions.Blocks(d.Status.Conditions)),
		})
	}

	return rows
}
