// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of a Database, beside those that it shares with an Algorithm.
const (
	// TypeAvailable: True when there is a leader that takes writes.
	TypeAvailable xpv2.ConditionType = "Available"

	// TypeHighlyAvailable: True when a standby can be promoted at once, with every acknowledged commit.
	TypeHighlyAvailable xpv2.ConditionType = "HighlyAvailable"

	// TypeTopologySafe: True when members are spread as spec.availability requires.
	TypeTopologySafe xpv2.ConditionType = "TopologySafe"

	// TypeStorageHealthy: True when all volumes exist, belong to this Database, and have free space.
	TypeStorageHealthy xpv2.ConditionType = "StorageHealthy"

	// TypeConsumersReady: True when every consumer can log in.
	TypeConsumersReady xpv2.ConditionType = "ConsumersReady"

	// TypeSwitchedOver: True when the switchover is done: the one in spec.switchover, or one that Capstan requests because
	// the node of the leader is drained. It exists only with a switchover.
	TypeSwitchedOver xpv2.ConditionType = "SwitchedOver"

	// TypeDeletionProtected: True when the API server rejects the deletion of the Database.
	TypeDeletionProtected xpv2.ConditionType = "DeletionProtected"

	// TypePooled: True when poolers accept clients. It exists only with spec.pooler.
	TypePooled xpv2.ConditionType = "Pooled"

	// TypeQueriesHealthy: True when every member runs every query of spec.monitoring.queries without an error. It exists
	// only with queries.
	TypeQueriesHealthy xpv2.ConditionType = "QueriesHealthy"

	// TypeExposed: True when clients outside the cluster have an address to connect to. It exists only with spec.expose.
	TypeExposed xpv2.ConditionType = "Exposed"
)

// Reasons of the condition Accepted of a Database.
const (
	// ReasonVersionUnavailable: the platform's settings have no image of the version. Choose one that the message
	// names.
	ReasonVersionUnavailable xpv2.ConditionReason = "VersionUnavailable"
	// ReasonVersionChangeUnsupported: the data has a later version, or its engine cannot be upgraded yet. Set spec.version to the
	// version of the data.
	ReasonVersionChangeUnsupported xpv2.ConditionReason = "VersionChangeUnsupported"
	// ReasonUnsupportedByEngine: the engine does not have what a field asks for. The message has an alternative.
	ReasonUnsupportedByEngine xpv2.ConditionReason = "UnsupportedByEngine"
	// ReasonPlanUnavailable: the platform's settings have no such plan. Choose one that the message names.
	ReasonPlanUnavailable xpv2.ConditionReason = "PlanUnavailable"
	// ReasonExtensionUnavailable: the image does not have the extension. Choose one that the message names.
	ReasonExtensionUnavailable xpv2.ConditionReason = "ExtensionUnavailable"
)

// Reasons of the condition Updated of a Database. A step that failed has the reason of the member that failed.
const (
	// ReasonUpdated: every member matches the spec and is healthy. Nothing to do.
	ReasonUpdated xpv2.ConditionReason = "Updated"
	// ReasonAddingMembers: members are being created. Wait.
	ReasonAddingMembers xpv2.ConditionReason = "AddingMembers"
	// ReasonRestarting: a member restarts. Wait.
	ReasonRestarting xpv2.ConditionReason = "Restarting"
	// ReasonRemoving: a member is being removed. Wait.
	ReasonRemoving xpv2.ConditionReason = "Removing"
	// ReasonAwaitingStandby: the next member waits until the others are healthy, or the last changed member is not
	// healthy yet. If it stays so, read the log of the member that the message names.
	ReasonAwaitingStandby xpv2.ConditionReason = "AwaitingStandby"
	// ReasonAwaitingArchive: the leader does not hand over while changes wait on its volume for the archive. Correct what the
	// condition ArchiveHealthy names. spec.switchover moves the leader all the same.
	ReasonAwaitingArchive xpv2.ConditionReason = "AwaitingArchive"
	// ReasonRestartPending: a parameter is not in effect although the members have restarted. The message names it.
	ReasonRestartPending xpv2.ConditionReason = "RestartPending"
	// ReasonAwaitingWindow: the next member waits for a window of spec.maintenance.
	ReasonAwaitingWindow xpv2.ConditionReason = "AwaitingWindow"
	// ReasonChangeNotApproved: the change is not approved. Write its hash into spec.maintenance.approve.
	ReasonChangeNotApproved xpv2.ConditionReason = "AwaitingApproval"
	// ReasonFrozen: nothing starts before the end of spec.maintenance.freeze.
	ReasonFrozen xpv2.ConditionReason = "Frozen"
	// ReasonHibernating: members are being stopped. Wait.
	ReasonHibernating xpv2.ConditionReason = "Hibernating"
	// ReasonWaking: members start after a hibernation. Wait.
	ReasonWaking xpv2.ConditionReason = "Waking"
)

// Reasons of the condition Available, beside the reasons of a blocked member, such as ImagePullFailed, Unschedulable,
// CrashLooping or ImageUnsuitable.
const (
	// ReasonLeading: there is a leader. Nothing to do.
	ReasonLeading xpv2.ConditionReason = "Leading"
	// ReasonMakingReady: what members need is being created: identity, certificates. Wait.
	ReasonMakingReady xpv2.ConditionReason = "MakingReady"
	// ReasonVolumesExist: the Database belongs to a Preview, and there are volumes of an earlier Database of its name. Give the Preview another
	// name, or release these volumes and delete them.
	ReasonVolumesExist xpv2.ConditionReason = "VolumesExist"
	// ReasonBootstrapping: the first member initialises the data. Wait.
	ReasonBootstrapping xpv2.ConditionReason = "Bootstrapping"
	// ReasonNoLeader: there is no leader. If it stays so for longer than the timeout of the profile, follow the
	// runbook.
	ReasonNoLeader xpv2.ConditionReason = "NoLeader"
	// ReasonWaitingForFormerLeader: the members have taken back their volumes, and only the last leader can start.
	// Bring its pod up.
	ReasonWaitingForFormerLeader xpv2.ConditionReason = "WaitingForFormerLeader"
	// ReasonAwaitingTopology: the state of the members is unknown, because provider-capstan does not report it. Check
	// that it runs.
	ReasonAwaitingTopology xpv2.ConditionReason = "AwaitingTopology"
	// ReasonCertManagerMissing: certificates need cert-manager, which is not installed. Install it.
	ReasonCertManagerMissing xpv2.ConditionReason = "CertManagerMissing"
	// ReasonCertificateFailed: cert-manager cannot create a certificate. See its CertificateRequest.
	ReasonCertificateFailed xpv2.ConditionReason = "CertificateFailed"
	// ReasonRestoreFailed: the backup of spec.from cannot be restored. The message has the error.
	ReasonRestoreFailed xpv2.ConditionReason = "RestoreFailed"
	// ReasonBackupsExist: the bucket has backups of a Database with this name, and none of its volumes exist. Restore
	// them by spec.from, or set spec.backup.onExisting to StartEmpty.
	ReasonBackupsExist xpv2.ConditionReason = "BackupsExist"
	// ReasonPaused: failover was paused by hand. Resume it with patronictl resume.
	ReasonPaused xpv2.ConditionReason = "Paused"
	// ReasonHibernated: all members are stopped, because spec.hibernated is true.
	ReasonHibernated xpv2.ConditionReason = "Hibernated"
)

// Reasons of the condition HighlyAvailable.
const (
	// ReasonStandbyInSync: a standby has every commit. Nothing to do.
	ReasonStandbyInSync xpv2.ConditionReason = "StandbyInSync"
	// ReasonSingleMember: the Database has only one member. Raise spec.replicas.
	ReasonSingleMember xpv2.ConditionReason = "SingleMember"
	// ReasonNoStandby: no standby is close enough to the leader for a promotion. Wait, or check the member that the
	// message names.
	ReasonNoStandby xpv2.ConditionReason = "NoStandby"
	// ReasonTooFewMembers: a standby is ready, but without one member the rest are no majority, and take no writes. With two members of
	// MySQL raise spec.replicas to 3.
	ReasonTooFewMembers xpv2.ConditionReason = "TooFewMembers"
	// ReasonMembersMissing: a standby is ready, and other members are missing.
	ReasonMembersMissing xpv2.ConditionReason = "MembersMissing"
	// ReasonStandbyLost: a standby cannot follow, because its leader has removed what it needs next of the write-ahead
	// log. The member replays the archive, or is copied again, by itself: the message has which.
	ReasonStandbyLost xpv2.ConditionReason = "StandbyLost"
	// ReasonMembersApart: members do not hear from each other, and the leader hears from all: without it they may be no
	// majority. Check the network between the nodes of the members that the message names.
	ReasonMembersApart xpv2.ConditionReason = "MembersApart"
)

// Reasons of the condition TopologySafe.
const (
	// ReasonSpread: members are spread as required. Nothing to do.
	ReasonSpread xpv2.ConditionReason = "Spread"
	// ReasonOneNode: all members are on one node, because the cluster has only one. Add nodes.
	ReasonOneNode xpv2.ConditionReason = "OneNode"
	// ReasonZoneShared: members share a zone although there are enough zones. Move a member (see the runbook).
	ReasonZoneShared xpv2.ConditionReason = "ZoneShared"
	// ReasonNodeShared: members share a node although there are enough nodes. Move a member (see the runbook).
	ReasonNodeShared xpv2.ConditionReason = "NodeShared"
	// ReasonTooFewZones: the cluster has only one zone. Add nodes in other zones.
	ReasonTooFewZones xpv2.ConditionReason = "TooFewZones"
	// ReasonSpreadUnknown: the places of the members are not known yet.
	ReasonSpreadUnknown xpv2.ConditionReason = "SpreadUnknown"
)

// Reasons of the condition StorageHealthy.
const (
	// ReasonStorageReady: every volume exists and has free space. Nothing to do.
	ReasonStorageReady xpv2.ConditionReason = "StorageReady"
	// ReasonStorageLow: a volume is nearly full. Raise spec.storage, or fix the cause in the message.
	ReasonStorageLow xpv2.ConditionReason = "StorageLow"
	// ReasonStorageFull: a volume is full. Raise spec.storage, or fix the cause in the message.
	ReasonStorageFull xpv2.ConditionReason = "StorageFull"
	// ReasonVolumePending: a volume does not exist yet. If it stays so, read the events of its claim.
	ReasonVolumePending xpv2.ConditionReason = "VolumePending"
	// ReasonVolumeOfAnother: a volume with this name belongs to another Database. Choose another name for this one, or
	// release that volume.
	ReasonVolumeOfAnother xpv2.ConditionReason = "VolumeOfAnother"
	// ReasonGrowthUnsupported: the volumes are smaller than requested, because their StorageClass does not support
	// growth.
	ReasonGrowthUnsupported xpv2.ConditionReason = "GrowthUnsupported"
)

// Reasons of the condition ConsumersReady.
const (
	// ReasonConsumersConnected: every consumer can log in. Nothing to do.
	ReasonConsumersConnected xpv2.ConditionReason = "ConsumersConnected"
	// ReasonConsumersPending: logins are being created. Wait.
	ReasonConsumersPending xpv2.ConditionReason = "ConsumersPending"
	// ReasonExtensionsPending: extensions are being created. The message names them, and what blocks them.
	ReasonExtensionsPending xpv2.ConditionReason = "ExtensionsPending"
	// ReasonAccessFailed: a database, login or extension cannot be created. See the Access with the name of this
	// Database.
	ReasonAccessFailed xpv2.ConditionReason = "AccessFailed"
)

// Reasons of the condition DeletionProtected.
const (
	// ReasonProtected: the API server rejects the deletion of the Database. Nothing to do.
	ReasonProtected xpv2.ConditionReason = "Protected"
	// ReasonUnprotected: the Database can be deleted. Set spec.deletionProtection to true to prevent that.
	ReasonUnprotected xpv2.ConditionReason = "Unprotected"
)

// Reasons of the condition SwitchedOver.
const (
	// ReasonSwitchedOver: the requested member is the leader. Nothing to do.
	ReasonSwitchedOver xpv2.ConditionReason = "SwitchedOver"
	// ReasonSwitchingOver: the switchover is in progress. Wait.
	ReasonSwitchingOver xpv2.ConditionReason = "SwitchingOver"
	// ReasonAwaitingCandidate: the requested member cannot be promoted yet. Wait for it, or choose another.
	ReasonAwaitingCandidate xpv2.ConditionReason = "AwaitingCandidate"
	// ReasonSwitchoverFailed: the leader did not change. Read its log, then use another ID.
	ReasonSwitchoverFailed xpv2.ConditionReason = "SwitchoverFailed"
	// ReasonSwitchoverSkipped: the Database was created with this ID. Use another ID for a switchover.
	ReasonSwitchoverSkipped xpv2.ConditionReason = "SwitchoverSkipped"
)

// Reasons of the condition StorageHealthy while volumes grow, or should.
const (
	// ReasonGrowing: volumes grow. Nothing to do.
	ReasonGrowing xpv2.ConditionReason = "Growing"
	// ReasonGrowthFailed: a volume cannot grow. The message has the error of the API server, the storage driver or the
	// node.
	ReasonGrowthFailed xpv2.ConditionReason = "GrowthFailed"
	// ReasonGrowthBound: volumes have grown to storageGrowth.max. Raise it or spec.storage, or remove data.
	ReasonGrowthBound xpv2.ConditionReason = "GrowthBound"
	// ReasonGrowthHeld: write-ahead log fills a volume, not data, so it does not grow automatically. Fix the cause in
	// the message.
	ReasonGrowthHeld xpv2.ConditionReason = "GrowthHeld"
)

// Reasons of the condition Pooled.
const (
	// ReasonPooling: every pooler accepts clients. Nothing to do.
	ReasonPooling xpv2.ConditionReason = "Pooling"
	// ReasonPoolersMissing: some poolers accept clients and others are missing. The message names what blocks them.
	ReasonPoolersMissing xpv2.ConditionReason = "PoolersMissing"
	// ReasonPoolersPending: no pooler accepts clients. If it stays so, read the message and the log of a pooler pod.
	ReasonPoolersPending xpv2.ConditionReason = "PoolersPending"
)

// Reasons of the condition QueriesHealthy.
const (
	// ReasonQueriesSucceed: every member runs every query without an error. Nothing to do.
	ReasonQueriesSucceed xpv2.ConditionReason = "QueriesSucceed"
	// ReasonQueryFails: a query failed twice in a row. Fix what the message names.
	ReasonQueryFails xpv2.ConditionReason = "QueryFails"
	// ReasonQueriesUnknown: a member does not report its queries: it has to restart first, or is not up (see Updated), its
	// exporter does not run, or one query has not run yet.
	ReasonQueriesUnknown xpv2.ConditionReason = "QueriesUnknown"
)

// Reasons of the condition Exposed.
const (
	// ReasonAddressAssigned: the load balancer has an address. Nothing to do.
	ReasonAddressAssigned xpv2.ConditionReason = "AddressAssigned"
	// ReasonAddressPending: the load balancer has no address yet. If it stays so, read the events of Service
	// DATABASE-external.
	ReasonAddressPending xpv2.ConditionReason = "AddressPending"
)
