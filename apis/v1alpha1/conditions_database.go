// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of a Database, beside those that an Algorithm has, too.
const (
	// TypeAvailable tells whether a member leads and takes writes.
	TypeAvailable xpv2.ConditionType = "Available"

	// TypeHighlyAvailable tells whether another member can lead at once, with every
	// commit that a client was told of.
	TypeHighlyAvailable xpv2.ConditionType = "HighlyAvailable"

	// TypeTopologySafe tells whether members are spread as spec.availability asks.
	TypeTopologySafe xpv2.ConditionType = "TopologySafe"

	// TypeStorageHealthy tells whether volumes are there, are those of this
	// Database, and have room.
	TypeStorageHealthy xpv2.ConditionType = "StorageHealthy"

	// TypeConsumersReady tells whether every consumer can log in.
	TypeConsumersReady xpv2.ConditionType = "ConsumersReady"

	// TypeSwitchedOver tells what became of spec.switchover, or of a switchover that
	// Capstan asks for because the node of the leader is being emptied. It is told
	// only with one.
	TypeSwitchedOver xpv2.ConditionType = "SwitchedOver"

	// TypeDeletionProtected tells whether deleting the Database is refused.
	TypeDeletionProtected xpv2.ConditionType = "DeletionProtected"
)

// Reasons of the condition Accepted of a Database.
const (
	// ReasonVersionUnavailable: the platform's settings have no image of the
	// version.
	ReasonVersionUnavailable xpv2.ConditionReason = "VersionUnavailable"
	// ReasonVersionChangeUnsupported: the data is of a later major version.
	ReasonVersionChangeUnsupported xpv2.ConditionReason = "VersionChangeUnsupported"
	// ReasonPlanUnavailable: the platform's settings have no such plan.
	ReasonPlanUnavailable xpv2.ConditionReason = "PlanUnavailable"
	// ReasonExtensionUnavailable: the image does not have the extension.
	ReasonExtensionUnavailable xpv2.ConditionReason = "ExtensionUnavailable"
)

// Reasons of the condition Updated of a Database. A step that failed has the
// reason of the member that failed.
const (
	// ReasonUpdated: every member runs what the spec asks for, and was well with it.
	ReasonUpdated xpv2.ConditionReason = "Updated"
	// ReasonAddingMembers: members are being made.
	ReasonAddingMembers xpv2.ConditionReason = "AddingMembers"
	// ReasonRestarting: a member is started anew.
	ReasonRestarting xpv2.ConditionReason = "Restarting"
	// ReasonRemoving: a member is let go.
	ReasonRemoving xpv2.ConditionReason = "Removing"
	// ReasonAwaitingStandby: the next member is changed once the others are well, or the
	// last one was changed and is not well yet.
	ReasonAwaitingStandby xpv2.ConditionReason = "AwaitingStandby"
	// ReasonRestartPending: parameters wait for a restart that did not help.
	ReasonRestartPending xpv2.ConditionReason = "RestartPending"
	// ReasonAwaitingWindow: the next member is begun in a window of
	// spec.maintenance.
	ReasonAwaitingWindow xpv2.ConditionReason = "AwaitingWindow"
	// ReasonChangeNotApproved: the change was not approved yet.
	ReasonChangeNotApproved xpv2.ConditionReason = "AwaitingApproval"
	// ReasonFrozen: nothing is begun before the end of spec.maintenance.freeze.
	ReasonFrozen xpv2.ConditionReason = "Frozen"
	// ReasonHibernating: members are being stopped.
	ReasonHibernating xpv2.ConditionReason = "Hibernating"
	// ReasonWaking: members are being started after a hibernation.
	ReasonWaking xpv2.ConditionReason = "Waking"
)

// Reasons of the condition Available, beside those of a member that is hindered,
// such as ImagePullFailed, Unschedulable, CrashLooping or ImageUnsuitable.
const (
	// ReasonLeading: a member leads.
	ReasonLeading xpv2.ConditionReason = "Leading"
	// ReasonMakingReady: what members need is being made: identity, certificates.
	ReasonMakingReady xpv2.ConditionReason = "MakingReady"
	// ReasonBootstrapping: the first member makes the data.
	ReasonBootstrapping xpv2.ConditionReason = "Bootstrapping"
	// ReasonNoLeader: no member leads.
	ReasonNoLeader xpv2.ConditionReason = "NoLeader"
	// ReasonWaitingForFormerLeader: the data was taken back, and only the member
	// that led last can begin.
	ReasonWaitingForFormerLeader xpv2.ConditionReason = "WaitingForFormerLeader"
	// ReasonAwaitingTopology: it is not known how members are, because nobody looks.
	ReasonAwaitingTopology xpv2.ConditionReason = "AwaitingTopology"
	// ReasonCertManagerMissing: certificates need cert-manager, and the cluster has
	// none.
	ReasonCertManagerMissing xpv2.ConditionReason = "CertManagerMissing"
	// ReasonCertificateFailed: cert-manager cannot make a certificate.
	ReasonCertificateFailed xpv2.ConditionReason = "CertificateFailed"
	// ReasonRestoreFailed: the backup of spec.from cannot be restored.
	ReasonRestoreFailed xpv2.ConditionReason = "RestoreFailed"
	// ReasonBackupsExist: the bucket has backups of a Database of this name, and none
	// of its volumes are there.
	ReasonBackupsExist xpv2.ConditionReason = "BackupsExist"
	// ReasonPaused: failover is paused by hand.
	ReasonPaused xpv2.ConditionReason = "Paused"
	// ReasonHibernated: members are stopped, as spec.hibernated asks.
	ReasonHibernated xpv2.ConditionReason = "Hibernated"
)

// Reasons of the condition HighlyAvailable.
const (
	// ReasonStandbyInSync: a member that follows has every commit.
	ReasonStandbyInSync xpv2.ConditionReason = "StandbyInSync"
	// ReasonSingleMember: the Database has one member only.
	ReasonSingleMember xpv2.ConditionReason = "SingleMember"
	// ReasonNoStandby: no member follows closely enough to lead.
	ReasonNoStandby xpv2.ConditionReason = "NoStandby"
	// ReasonMembersMissing: a standby is there, and other members are missing.
	ReasonMembersMissing xpv2.ConditionReason = "MembersMissing"
)

// Reasons of the condition TopologySafe.
const (
	// ReasonSpread: members are spread as asked.
	ReasonSpread xpv2.ConditionReason = "Spread"
	// ReasonOneNode: all members are on one node, because the cluster has one.
	ReasonOneNode xpv2.ConditionReason = "OneNode"
	// ReasonZoneShared: members share a zone although there are enough zones.
	ReasonZoneShared xpv2.ConditionReason = "ZoneShared"
	// ReasonNodeShared: members share a node although there are enough nodes.
	ReasonNodeShared xpv2.ConditionReason = "NodeShared"
	// ReasonTooFewZones: the cluster has one zone.
	ReasonTooFewZones xpv2.ConditionReason = "TooFewZones"
	// ReasonSpreadUnknown: it is not known yet where members are.
	ReasonSpreadUnknown xpv2.ConditionReason = "SpreadUnknown"
)

// Reasons of the condition StorageHealthy.
const (
	// ReasonStorageReady: every volume is there and has room.
	ReasonStorageReady xpv2.ConditionReason = "StorageReady"
	// ReasonStorageLow: a volume is nearly full.
	ReasonStorageLow xpv2.ConditionReason = "StorageLow"
	// ReasonStorageFull: a volume is full.
	ReasonStorageFull xpv2.ConditionReason = "StorageFull"
	// ReasonVolumePending: a volume is not there yet.
	ReasonVolumePending xpv2.ConditionReason = "VolumePending"
	// ReasonVolumeOfAnother: a volume of this name belongs to another Database.
	ReasonVolumeOfAnother xpv2.ConditionReason = "VolumeOfAnother"
	// ReasonGrowthUnsupported: the volumes are smaller than asked.
	ReasonGrowthUnsupported xpv2.ConditionReason = "GrowthUnsupported"
)

// Reasons of the condition ConsumersReady.
const (
	// ReasonConsumersConnected: every login is as asked.
	ReasonConsumersConnected xpv2.ConditionReason = "ConsumersConnected"
	// ReasonConsumersPending: logins are being made.
	ReasonConsumersPending xpv2.ConditionReason = "ConsumersPending"
	// ReasonExtensionsPending: extensions are being made.
	ReasonExtensionsPending xpv2.ConditionReason = "ExtensionsPending"
	// ReasonAccessFailed: a database, login or extension cannot be made.
	ReasonAccessFailed xpv2.ConditionReason = "AccessFailed"
)

// Reasons of the condition DeletionProtected.
const (
	// ReasonProtected: deleting the Database is refused.
	ReasonProtected xpv2.ConditionReason = "Protected"
	// ReasonUnprotected: the Database may be deleted.
	ReasonUnprotected xpv2.ConditionReason = "Unprotected"
)

// Reasons of the condition SwitchedOver.
const (
	// ReasonSwitchedOver: another member leads, as was asked for.
	ReasonSwitchedOver xpv2.ConditionReason = "SwitchedOver"
	// ReasonSwitchingOver: the leader was asked to hand over.
	ReasonSwitchingOver xpv2.ConditionReason = "SwitchingOver"
	// ReasonAwaitingCandidate: the member that is to lead cannot yet.
	ReasonAwaitingCandidate xpv2.ConditionReason = "AwaitingCandidate"
	// ReasonSwitchoverFailed: the lead did not move.
	ReasonSwitchoverFailed xpv2.ConditionReason = "SwitchoverFailed"
	// ReasonSwitchoverSkipped: the Database was made with this id.
	ReasonSwitchoverSkipped xpv2.ConditionReason = "SwitchoverSkipped"
)
