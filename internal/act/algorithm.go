// SPDX-License-Identifier: Apache-2.0

package act

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// blockRollout is what a person asks of a rollout.
const blockRollout = "rollout"

// mostApprovals is how many entries the schema allows.
const mostApprovals = 32

// ofAlgorithm is a plan for an Algorithm.
type ofAlgorithm = Plan[*v1alpha1.Algorithm]

// rollout of an Algorithm that can be asked for something.
func rollout(a *v1alpha1.Algorithm) (v1alpha1.RolloutStatus, error) {
	if err := live(a, a.Status.ConditionedStatus); err != nil {
		return v1alpha1.RolloutStatus{}, err
	}
	if a.Spec.Lifecycle == nil {
		return v1alpha1.RolloutStatus{}, errors.New("spec.lifecycle is not set, so that there are no rollouts: set it")
	}
	if a.Status.Rollout == nil {
		return v1alpha1.RolloutStatus{}, errors.New("its rollout has no status yet: wait a moment")
	}

	return *a.Status.Rollout, nil
}

// candidate is the revision under test.
func candidate(r v1alpha1.RolloutStatus) (string, error) {
	switch {
	case r.Phase == v1alpha1.RolloutRolledBack:
		return "", fmt.Errorf("revision %s was rolled back (%s): correct the spec, or try it again with retry", r.Candidate, r.Reason)
	case r.Phase == v1alpha1.RolloutRollingBack:
		return "", fmt.Errorf("revision %s is being rolled back (%s): wait until that is over", r.Candidate, r.Reason)
	case r.Candidate == "" || r.Phase == v1alpha1.RolloutStable || r.Phase == v1alpha1.RolloutDraining || r.Phase == v1alpha1.RolloutBootstrapping:
		return "", fmt.Errorf("no revision is under test: the rollout is %s", r.Phase)
	default:
		return r.Candidate, nil
	}
}

func requests(a *v1alpha1.Algorithm) v1alpha1.RolloutRequests {
	if a.Spec.Rollout == nil {
		return v1alpha1.RolloutRequests{}
	}

	return *a.Spec.Rollout
}

// Pause holds the rollout at its share of traffic.
func Pause(a *v1alpha1.Algorithm) (ofAlgorithm, error) {
	r, err := rollout(a)
	if err != nil {
		return ofAlgorithm{}, err
	}
	if requests(a).Pause {
		return ofAlgorithm{Done: "its rollout is paused already"}, nil
	}
	words := "No rollout and no experiment begins until it is resumed."
	if rev, err := candidate(r); err == nil {
		words = fmt.Sprintf("Revision %s keeps its %d %% of traffic until the rollout is resumed. A failure still rolls it back.", rev, r.Weight)
	}

	return ofAlgorithm{
		Words: []string{words},
		Spec:  map[string]any{blockRollout: map[string]any{"pause": true}},
		Outcome: func(a *v1alpha1.Algorithm) Progress {
			r := a.Status.Rollout
			switch {
			case r == nil || !current(a, a.Status.ConditionedStatus):
				return Progress{Message: "Crossplane has not read the edit yet"}
			case r.Reason == string(v1alpha1.ReasonRolloutPaused), r.Phase == v1alpha1.RolloutStable, r.Phase == v1alpha1.RolloutRolledBack:
				return Progress{Done: true, Message: "the rollout is " + inWords(r)}
			default:
				return Progress{Message: "the rollout is " + inWords(r)}
			}
		},
	}, nil
}

// Resume ends a pause.
func Resume(a *v1alpha1.Algorithm) (ofAlgorithm, error) {
	if _, err := rollout(a); err != nil {
		return ofAlgorithm{}, err
	}
	if !requests(a).Pause {
		return ofAlgorithm{Done: "its rollout is not paused"}, nil
	}

	return ofAlgorithm{
		Words: []string{"The rollout continues. Its step or its bake lasts as long again."},
		Spec:  map[string]any{blockRollout: map[string]any{"pause": nil}},
		Outcome: func(a *v1alpha1.Algorithm) Progress {
			r := a.Status.Rollout
			if r == nil || !current(a, a.Status.ConditionedStatus) || r.Reason == string(v1alpha1.ReasonRolloutPaused) {
				return Progress{Message: "the rollout is still paused"}
			}

			return Progress{Done: true, Message: "the rollout is " + inWords(r)}
		},
	}, nil
}

// Approve the candidate up to a share of traffic in percent: 0 for the share that it waits for, or the next step.
func Approve(a *v1alpha1.Algorithm, weight int32) (ofAlgorithm, error) {
	r, err := rollout(a)
	if err != nil {
		return ofAlgorithm{}, err
	}
	rev, err := candidate(r)
	if err != nil {
		return ofAlgorithm{}, err
	}
	if approval := a.Spec.Lifecycle.Approval; approval == "" || approval == v1alpha1.ApprovalNone {
		return ofAlgorithm{}, errors.New("spec.lifecycle.approval is None: its rollout waits for no approval; to send all traffic without evidence, use promote")
	}
	if weight == 0 {
		weight = next(a, r)
	}
	if weight < 1 || weight > 100 {
		return ofAlgorithm{}, fmt.Errorf("cannot approve %d %%: a share is from 1 to 100", weight)
	}
	entry := fmt.Sprintf("%s:%d", rev, weight)
	before := requests(a).Approve
	if slices.Contains(before, entry) || slices.Contains(before, rev) {
		return ofAlgorithm{Done: fmt.Sprintf("revision %s is approved up to %d %% already", rev, weight)}, nil
	}
	share := fmt.Sprintf("up to %d %% of traffic", weight)
	if weight == 100 {
		share = "all traffic"
	}

	return ofAlgorithm{
		Words: []string{fmt.Sprintf("Revision %s may get %s once its evidence passes.", rev, share)},
		Spec:  map[string]any{blockRollout: map[string]any{"approve": approvals(before, rev, entry)}},
		// A merge patch writes a list as a whole.
		Replaces: true,
		Outcome: func(a *v1alpha1.Algorithm) Progress {
			r := a.Status.Rollout
			switch {
			case r == nil || !current(a, a.Status.ConditionedStatus):
				return Progress{Message: "Crossplane has not read the edit yet"}
			case r.Reason == string(v1alpha1.ReasonAwaitingApproval) && r.Candidate == rev:
				return Progress{Message: r.Message}
			case rolledBack(r, rev):
				return Progress{Failed: true, Message: "the rollout is " + inWords(r)}
			default:
				return Progress{Done: true, Message: "the rollout is " + inWords(r)}
			}
		},
	}, nil
}

// approvals with one more. Where the list is full, entries of other revisions go, which have no effect.
func approvals(before []string, rev, entry string) []any {
	kept := slices.Clone(before)
	if len(kept) >= mostApprovals {
		kept = slices.DeleteFunc(kept, func(e string) bool { return !strings.HasPrefix(e, rev) })
	}
	list := make([]any, 0, len(kept)+1)
	for _, e := range append(kept, entry) {
		list = append(list, e)
	}

	return list
}

// next share of traffic after the present one.
func next(a *v1alpha1.Algorithm, r v1alpha1.RolloutStatus) int32 {
	l := a.Spec.Lifecycle
	if l.Approval != v1alpha1.ApprovalEveryStep {
		return 100
	}
	for _, step := range l.Steps {
		if step > r.Weight {
			return step
		}
	}
	if len(l.Steps) == 0 && l.CanaryWeight != nil && *l.CanaryWeight > r.Weight {
		return *l.CanaryWeight
	}

	return 100
}

// Promote the candidate without evidence.
func Promote(a *v1alpha1.Algorithm) (ofAlgorithm, error) {
	r, err := rollout(a)
	if err != nil {
		return ofAlgorithm{}, err
	}
	rev, err := candidate(r)
	if err != nil {
		return ofAlgorithm{}, err
	}
	switch {
	case requests(a).Abort == rev:
		return ofAlgorithm{}, fmt.Errorf("spec.rollout.abort names revision %s: remove it first", rev)
	case requests(a).Promote == rev:
		return ofAlgorithm{Done: fmt.Sprintf("spec.rollout.promote names revision %s already", rev)}, nil
	}

	return ofAlgorithm{
		Ask: true,
		Words: []string{
			fmt.Sprintf("All traffic goes to revision %s, which has %d %% now, without further evidence or approval.", rev, r.Weight),
			"Pauses, freezes and the error budget do not hold it. It still waits for its replicas and bakes, and a failure still rolls it back.",
		},
		Spec: map[string]any{blockRollout: map[string]any{"promote": rev}},
		Outcome: func(a *v1alpha1.Algorithm) Progress {
			r := a.Status.Rollout
			switch {
			case r == nil:
				return Progress{Message: "its rollout has no status"}
			case rolledBack(r, rev):
				return Progress{Failed: true, Message: "the rollout is " + inWords(r)}
			case a.Status.Revision != nil && a.Status.Revision.Live == rev &&
				(r.Phase == v1alpha1.RolloutBaking || r.Phase == v1alpha1.RolloutDraining || r.Phase == v1alpha1.RolloutStable):
				return Progress{Done: true, Message: fmt.Sprintf("revision %s has all traffic, the rollout is %s", rev, r.Phase)}
			default:
				return Progress{Message: "the rollout is " + inWords(r)}
			}
		},
	}, nil
}

// Abort rolls the candidate back.
func Abort(a *v1alpha1.Algorithm) (ofAlgorithm, error) {
	r, err := rollout(a)
	if err != nil {
		return ofAlgorithm{}, err
	}
	rev, err := candidate(r)
	if err != nil {
		return ofAlgorithm{}, err
	}
	if requests(a).Abort == rev {
		return ofAlgorithm{Done: fmt.Sprintf("spec.rollout.abort names revision %s already", rev)}, nil
	}
	words := fmt.Sprintf("Revision %s is rolled back at once.", rev)
	if r.Stable != "" && r.Stable != rev {
		words = fmt.Sprintf("Revision %s is rolled back at once: all traffic goes to revision %s.", rev, r.Stable)
	}

	return ofAlgorithm{
		Ask:   true,
		Words: []string{words, "It stays rolled back until the spec describes another revision, or it is tried again with retry."},
		Spec:  map[string]any{blockRollout: map[string]any{"abort": rev}},
		Outcome: func(a *v1alpha1.Algorithm) Progress {
			r := a.Status.Rollout
			switch {
			case r == nil:
				return Progress{Message: "its rollout has no status"}
			case r.Phase == v1alpha1.RolloutRolledBack, r.Phase == v1alpha1.RolloutStable && failed(r, rev) >= 0:
				return Progress{Done: true, Message: fmt.Sprintf("revision %s was rolled back", rev)}
			default:
				return Progress{Message: "the rollout is " + inWords(r)}
			}
		},
	}, nil
}

// Retry a revision that was rolled back.
func Retry(a *v1alpha1.Algorithm) (ofAlgorithm, error) {
	r, err := rollout(a)
	if err != nil {
		return ofAlgorithm{}, err
	}
	i := failed(&r, r.Candidate)
	if r.Phase != v1alpha1.RolloutRolledBack || i < 0 {
		return ofAlgorithm{}, fmt.Errorf("the revision that the spec describes was not rolled back: the rollout is %s", r.Phase)
	}
	f := r.Failed[i]
	if requests(a).Abort == f.Revision {
		return ofAlgorithm{}, fmt.Errorf("spec.rollout.abort names revision %s, which would be rolled back at once: remove it first", f.Revision)
	}
	attempt := fmt.Sprintf("%s#%d", f.Revision, f.Attempts+1)
	if requests(a).Retry == attempt {
		return ofAlgorithm{Done: fmt.Sprintf("spec.rollout.retry is %s already; it starts at %s", attempt, clock(f.RetryAfter.Time))}, nil
	}

	return ofAlgorithm{
		Words: []string{fmt.Sprintf("Attempt %d of revision %s starts at %s at the earliest. It was rolled back: %s.", f.Attempts+1, f.Revision, clock(f.RetryAfter.Time), f.Reason)},
		Spec:  map[string]any{blockRollout: map[string]any{"retry": attempt}},
		Outcome: func(a *v1alpha1.Algorithm) Progress {
			r := a.Status.Rollout
			if r != nil && r.Candidate == f.Revision && r.Phase != v1alpha1.RolloutRolledBack && r.Phase != v1alpha1.RolloutRollingBack {
				return Progress{Done: true, Message: "the rollout is " + inWords(r)}
			}

			return Progress{Message: "the attempt has not started: it may at " + clock(f.RetryAfter.Time)}
		},
	}, nil
}

func failed(r *v1alpha1.RolloutStatus, rev string) int {
	return slices.IndexFunc(r.Failed, func(f v1alpha1.FailedRevision) bool { return f.Revision == rev })
}

func rolledBack(r *v1alpha1.RolloutStatus, rev string) bool {
	return r.Candidate == rev && (r.Phase == v1alpha1.RolloutRollingBack || r.Phase == v1alpha1.RolloutRolledBack)
}

// inWords is a rollout in a line.
func inWords(r *v1alpha1.RolloutStatus) string {
	words := string(r.Phase)
	if r.Reason != "" {
		words += ", " + r.Reason
	}
	if r.Message != "" {
		words += ": " + r.Message
	}

	return words
}
