// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"encoding/json"
	"path"
	"strconv"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/jobpod"
)

// Plan that the crew of the run follows, as JSON.
func (in Inputs) Plan() (string, error) {
	s := in.Spec
	p := crew.Plan{
		Version: crew.PlanVersion, Training: in.Name, Run: int(in.Run),
		Workers: int(*s.Workers), Spares: int(*s.Spares), Processes: int(*s.ProcessesPerWorker),
		HostPrefix: in.Job(in.Run), Domain: in.Domain(),
		ResumeFrom: in.ResumeFrom, GraceSeconds: jobpod.Seconds(s.GracePeriod),
	}
	if c := s.Checkpoint; c != nil {
		p.Checkpoints = &crew.Checkpoints{Dir: c.Path, Complete: c.Complete, EverySeconds: jobpod.Seconds(c.Every)}
		if c.Keep != nil {
			p.Checkpoints.Keep = int(*c.Keep)
		}
		if in.Cycle > 0 {
			p.Checkpoints.Cycle, p.Checkpoints.Former = int(in.Cycle), int(in.Former)
			p.Checkpoints.Dir = path.Join(c.Path, crew.CyclePrefix(in.Name)+strconv.Itoa(int(in.Cycle)))
		}
	}
	if w := s.Watch; w != nil {
		p.Watch = watch(w)
	}
	if r := s.Retry; r != nil {
		p.Retry = crew.Retry{WithoutProgress: int(*r.WithoutProgress), Attempts: int(*r.Attempts)}
	}
	raw, err := json.Marshal(p)
	return string(raw), err //nolint:wrapcheck // The caller says what it was for.
}

func watch(w *v1alpha1.TrainingWatch) crew.Watch {
	out := crew.Watch{Progress: w.Progress, IgnoreNonFinite: w.NonFinite == v1alpha1.NonFiniteNotify}
	if p := w.Phases; p != nil {
		out.Phases = crew.Phases{Setup: jobpod.Seconds(p.Setup), Step: jobpod.Seconds(p.Step), Checkpoint: jobpod.Seconds(p.Checkpoint), Finish: jobpod.Seconds(p.Finish)}
	}
	for _, f := range w.Faults {
		out.Faults = append(out.Faults, crew.FaultPattern{Pattern: f.Pattern, Class: crew.Class(f.Class)})
	}
	return out
}
