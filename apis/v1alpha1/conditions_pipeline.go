// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// The condition LineageSent of a Pipeline or Training, and its own reason.
const (
	// TypeLineageSent: True while the server for OpenLineage takes the events of runs, False while it does not. No run waits for it. Only
	// with spec.lineage. It has the reasons of Connected, ReasonProviderMissing and ReasonNothingSent.
	TypeLineageSent xpv2.ConditionType = "LineageSent"

	// ReasonNothingSent: no event has been sent yet. Read the log of the provider if this stays.
	ReasonNothingSent xpv2.ConditionReason = "NothingSent"
)

// Reasons of the conditions Progressing and Succeeded of a Pipeline. Its phases are reasons of Progressing, too, and ReasonProgramFailed,
// ReasonDeadlineExceeded and ReasonNotFinished mean the same as for a Training.
const (
	// ReasonNoRun: no run has begun yet. Wait for the schedule.
	ReasonNoRun xpv2.ConditionReason = "NoRun"
	// ReasonJobDeleted: something else than Capstan deleted the Job of a run. Ask for it again with another id in spec.run.
	ReasonJobDeleted xpv2.ConditionReason = "JobDeleted"
	// ReasonPodsUnblocked: nothing blocks the pods of active runs. Nothing to do.
	ReasonPodsUnblocked xpv2.ConditionReason = "PodsUnblocked"
	// ReasonRunsUnknown: the provider has not reported the runs. Read the log of the provider if this stays.
	ReasonRunsUnknown xpv2.ConditionReason = "RunsUnknown"
)
