// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of a Database with spec.from.server or spec.from.dump.
const (
	// TypeImported: True once the Database was cut over or every dump is restored, and it is independent of the source.
	TypeImported xpv2.ConditionType = "Imported"
)

// Reasons of the condition Imported.
const (
	// ReasonCutOver: the Database has everything, and consumers log in. Nothing to do, unless the message names what is
	// left at the source.
	ReasonCutOver xpv2.ConditionReason = "CutOver"
	// ReasonDumpRestored: the Database has everything of the dumps, and consumers log in. Nothing to do.
	ReasonDumpRestored xpv2.ConditionReason = "DumpRestored"
	// ReasonImportChecking: the source is being checked. Wait.
	ReasonImportChecking xpv2.ConditionReason = "ImportChecking"
	// ReasonImportIncompatible: something stands in the way, and nothing is copied. The message and status.import.findings
	// have each cause with its remedy.
	ReasonImportIncompatible xpv2.ConditionReason = "ImportIncompatible"
	// ReasonImportCopying: schema and rows are being copied. Wait.
	ReasonImportCopying xpv2.ConditionReason = "ImportCopying"
	// ReasonImportFollowing: changes of the source are applied. To end the import, set spec.cutOver.
	ReasonImportFollowing xpv2.ConditionReason = "ImportFollowing"
	// ReasonImportFailing: changes of the source are not applied, and it keeps them, or a dump cannot be restored. The
	// message names the cause.
	ReasonImportFailing xpv2.ConditionReason = "ImportFailing"
	// ReasonCuttingOver: the cut-over is under way. The message names what it waits for.
	ReasonCuttingOver xpv2.ConditionReason = "CuttingOver"
	// ReasonCutOverSkipped: the Database was created with this ID. Use another ID to cut over.
	ReasonCutOverSkipped xpv2.ConditionReason = "CutOverSkipped"
	// ReasonImportUnknown: there is no leader that reports. See the condition Available.
	ReasonImportUnknown xpv2.ConditionReason = "ImportUnknown"
)

// ReasonImporting of Available and of ConsumersReady: the Database is filled from another server or from dumps, and
// consumers cannot log in before that has ended. See the condition Imported.
const ReasonImporting xpv2.ConditionReason = "Importing"
