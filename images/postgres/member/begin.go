// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pods"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/volume"
)

// unstarted is how long a member with an empty volume waits for others whose pods do not start, when it is not known whether they
// have a volume. A Database is to begin on the nodes that there are.
const unstarted = time.Minute

// mayBegin tells what this member has to wait for before its PostgreSQL starts.
func (m *member) mayBegin(ctx context.Context, programs string) error {
	system, err := m.pods.System(ctx, m.Scope)
	if err != nil {
		return err
	}
	own, err := volume.Read(ctx, programs, layout.Data)
	if err != nil {
		return err
	}
	if system != "" {
		if !own.Empty && own.System != system {
			return &volume.Problem{Reason: volume.OfAnother, Message: fmt.Sprintf("the data has the system identifier %s, and the Database "+
				"has %s: it began anew without this volume. Remove the volume if its data is not needed", own.System, system)}
		}
		return nil
	}
	wanted, err := readWanted()
	if err != nil {
		return err
	}
	if wanted.Upgrade != nil {
		if err := m.upgrade(ctx, *wanted.Upgrade, own); err != nil {
			return err
		}
		// Patroni would make new data where there is none.
		if empty, err := volume.Empty(layout.Data); empty || err != nil {
			return errors.Join(errors.New("the upgrade ended without data"), err)
		}
		return nil
	}
	list, err := m.pods.List(ctx)
	if err != nil {
		return err
	}
	if err := m.tellVolume(ctx, own, list); err != nil {
		return err
	}
	told := map[string]volume.Content{}
	for _, p := range list {
		if p.Volume != nil {
			told[p.Member] = *p.Volume
		}
	}
	if wait := volume.MayBegin(m.Name, own, told, m.expected(wanted, list, own)); wait != nil {
		return wait
	}
	if own.Empty {
		return m.besideBackups(ctx)
	}
	return nil
}

// tellVolume writes what this member's volume holds, unless its pod says so already.
func (m *member) tellVolume(ctx context.Context, own volume.Content, list []pods.Pod) error {
	for _, p := range list {
		if p.Name == m.Pod && p.Volume != nil && *p.Volume == own {
			return nil
		}
	}
	return m.pods.Annotate(ctx, pods.AnnotationVolume, own)
}

// expected are the members that have to tell what they hold before one begins.
func (m *member) expected(w wanted, list []pods.Pod, own volume.Content) []string {
	if w.Volumes != nil {
		return *w.Volumes
	}
	var out []string
	for _, p := range list {
		if own.Empty && !p.Started && time.Since(m.begun) > unstarted {
			continue
		}
		out = append(out, p.Member)
	}
	return out
}
