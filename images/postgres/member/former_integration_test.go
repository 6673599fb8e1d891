// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// TestFormerStanza: what a generation that is gone left is removed by the backup that replaces it, and nothing before it is named.
func TestFormerStanza(t *testing.T) {
	s := newStore(t)
	c := newClusterWith(t, []string{"a"}, archives)
	s.connection(c, "bucket")
	settings := c.settings("a")
	settings.RetentionDays, settings.RetentionFull = 0, 1
	former := settings.Stanza
	c.want(pgmember.Config{Backup: &settings})
	begin(t, c, "a")
	if first, said := c.backup(); first.Type != pgbackrest.Full {
		t.Fatalf("no backup: %s", said)
	}
	has := func(stanza string) bool {
		out, err := c.running("a").Enter("pgbackrest", "--config=/run/capstan/pgbackrest.conf", "--stanza="+stanza, "repo-ls", "backup")
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.Contains("\n"+out, "\n"+stanza+"\n")
	}
	settings.Stanza = scope + "-g2-17"
	c.want(pgmember.Config{Backup: &settings})
	c.eventually("the member serves the other stanza", 90*time.Second, func() bool { next, _ := c.backup(); return next.Type == pgbackrest.Full })
	if !has(former) || !has(settings.Stanza) {
		t.Fatalf("former there: %t, current there: %t", has(former), has(settings.Stanza))
	}
	settings.Former, settings.RetentionFull = []string{former, "never-made"}, 2
	c.want(pgmember.Config{Backup: &settings})
	if _, said := c.backup(); !has(former) {
		t.Fatalf("what the retention still promises is gone: %s", said)
	}
	settings.RetentionFull = 1
	c.want(pgmember.Config{Backup: &settings})
	last, said := c.backup()
	if has(former) {
		t.Fatalf("the former stanza is still there: %s", said)
	}
	if last.Label == "" || !has(settings.Stanza) {
		t.Errorf("the current stanza is gone: %+v", last)
	}
}
