// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"time"

	"k8s.io/utils/ptr"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgdata"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/postmaster"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/upgrader"
)

// checkFence stops PostgreSQL when there is a fence, and reports where it stopped. It returns a Wait for as long as this member
// must not run.
func (g *Gate) checkFence(ctx context.Context) error {
	_, running := postmaster.Find(pgmember.FolderData)
	o, err := g.DCS.SettleFence(ctx, time.Now())
	if err != nil {
		if running {
			return nil // Patroni has to watch over PostgreSQL also while the API server is down
		}
		return err
	}
	id := o.InForce()
	if id == "" {
		return g.reportFence(ctx, nil)
	}
	led, err := pgdata.WasLeader(pgmember.FolderData)
	if err != nil {
		return err
	}
	if running && !led {
		return nil // a standby, which continues to serve
	}
	g.stopForFence(ctx)
	g.Label.Call() // the label of the leader is removed at once
	own, err := pgdata.Read(ctx, pgmember.Programs(g.Names.Version), pgmember.FolderData)
	if err != nil {
		return err
	}
	wait := &volume.Wait{Reason: members.ReasonFenced, Message: "another generation continues with the data of this one, or is about to: this member stays stopped"}
	if o.Record.Until != nil {
		wait.Message += ", until " + o.Record.Until.UTC().Format(time.RFC3339) + " unless the other one takes over by then"
	}
	if own.Empty || !own.Led {
		return wait
	}
	// A generation with other data needs none of its writes.
	if !own.Clean && o.Followed {
		wait.Message = "PostgreSQL did not stop cleanly, and it is unknown which of its last writes the other generation has: the other one stops, and " +
			"this one will lead again"
		return wait
	}
	if err := g.reportFence(ctx, &members.FenceReport{ID: id, Position: own.Position, Timeline: own.Timeline, System: own.System}); err != nil {
		return err
	}
	return wait
}

// stopForFence stops PostgreSQL. One that does not stop is killed: then this generation gets a leader again, because it is
// unknown what the other one has.
func (g *Gate) stopForFence(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, upgrader.StopLimit)
	defer cancel()
	postmaster.Stop(limited, pgmember.FolderData)
	if _, running := postmaster.Find(pgmember.FolderData); running && ctx.Err() == nil {
		g.Log.Error("ending a PostgreSQL that does not stop for the fence", "limit", upgrader.StopLimit.String())
		postmaster.Kill(pgmember.FolderData)
	}
}

// reportFence writes where this member stopped, or removes it, unless its pod has that already.
func (g *Gate) reportFence(ctx context.Context, f *members.FenceReport) error {
	if !g.fenceKnown {
		list, err := g.Pods.List(ctx)
		if err != nil {
			return err
		}
		g.fence, g.fenceKnown = g.Pods.Own(list).Fenced, true
	}
	if ptr.Equal(f, g.fence) {
		return nil
	}
	var value any // a nil report in it would be written as null
	if f != nil {
		value = f
	}
	err := g.Pods.Annotate(ctx, members.AnnotationFenced, value)
	g.fence, g.fenceKnown = f, err == nil // it may have been written all the same
	return err
}
