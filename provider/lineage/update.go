// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/openlineage"
)

// Update sends every event that is due, in order. One that the server refuses is not sent again. After any other failure the queue tries
// again, ever more seldom.
func (e *external) Update(ctx context.Context, cr *v1alpha1.Lineage) (managed.ExternalUpdate, error) {
	for r, event, due := next(cr); due; r, event, due = next(cr) {
		done := v1alpha1.LineageSent{Run: r.Name, StartedAt: r.StartedAt, Event: string(event)}
		err := e.client.Send(ctx, e.event(cr, r, event))
		switch {
		case openlineage.Refuses(err):
			done.Refused = openlineage.Explain(err).Error()
		case err != nil:
			return managed.ExternalUpdate{}, err //nolint:wrapcheck // It says why.
		}
		remember(cr, done)
	}
	return managed.ExternalUpdate{}, nil
}

// event about a run.
func (e *external) event(cr *v1alpha1.Lineage, r v1alpha1.LineageRun, of openlineage.Type) openlineage.Event {
	p := cr.Spec.ForProvider
	out := openlineage.Event{
		Type: of, Time: r.StartedAt.Time, Run: e.id(cr, r), Namespace: e.client.JobNamespace(cr.GetNamespace()), Job: p.Job,
		Processing: openlineage.Batch, Inputs: datasets(p.Inputs), Outputs: datasets(p.Outputs),
	}
	if p.Streaming {
		out.Processing = openlineage.Streaming
	}
	if of != openlineage.Start && r.EndedAt != nil {
		out.Time = r.EndedAt.Time
		for _, d := range datasets(r.Outputs) {
			if !slices.Contains(out.Outputs, d) {
				out.Outputs = append(out.Outputs, d)
			}
		}
	}
	return out
}

// id of a run, the same each time, and another one for each run of each cluster.
func (e *external) id(cr *v1alpha1.Lineage, r v1alpha1.LineageRun) string {
	of := []string{e.cluster, cr.GetNamespace(), r.Name, r.StartedAt.UTC().Format(time.RFC3339)}
	return uuid.NewSHA1(runs, []byte(strings.Join(of, "/"))).String()
}

// runs is the name space of the IDs of runs. It never changes.
var runs = uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/capstan-dev/capstan#runs"))

func datasets(of []v1alpha1.LineageDataset) []openlineage.Dataset {
	all := make([]openlineage.Dataset, 0, len(of))
	for _, d := range of {
		all = append(all, openlineage.Dataset(d))
	}
	return all
}
