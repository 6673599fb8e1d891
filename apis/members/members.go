// SPDX-License-Identifier: Apache-2.0

// Package members is the contract between the members of a Database and the programs that see them from outside: labels, annotations and
// reports. What an engine's members are configured with is in a package of its own, such as pgmember. These packages import the standard
// library only, because the program that uses them is in every image of a member.
package members

// Labels and annotations of the members of a Database.
const (
	// LabelDatabase names the Database that a pod, volume, Secret or ConfigMap
	// belongs to.
	LabelDatabase = "capstan.dev/database"

	// LabelScope is the scope of a generation's members, which the names of their
	// ConfigMaps begin with. The word is Patroni's.
	LabelScope = "cluster-name"

	// LabelMember names the member that a pod or volume belongs to.
	LabelMember = "capstan.dev/member"

	// LabelRole is RoleLeader or RoleReplica on the pod of a member that serves.
	// Members write it themselves: the one that begins to lead takes RoleLeader from
	// all others first.
	LabelRole = "capstan.dev/role"

	// AnnotationReport is what a member reports of itself, as the JSON of a Report.
	AnnotationReport = "capstan.dev/member-report"
)

// LabelPooler is the label of the pods of poolers, with the name of the Database.
const LabelPooler = "capstan.dev/pooler"

// Program runs members, poolers, and the pods that take and verify backups. Every engine's image has it there.
const Program = "/usr/local/bin/capstan-member"

// FolderConnection holds the Secret of the consumer that a hook runs as, in every engine's pod of a hook.
const FolderConnection = "/etc/capstan/connection"

// Values of LabelRole.
const (
	RoleLeader  = "leader"
	RoleReplica = "replica"
)

// Report is what a member reports of itself in AnnotationReport. It is
// written only when it changes.
type Report struct {
	// Version of the server, for instance 17.6.
	Version string `json:"version,omitempty"`

	// Disk says how full the volume is: Ok, Low (over 85 %) or Full (over 95 %).
	Disk string `json:"disk,omitempty"`

	// Volume says how full the volume is, and by what.
	Volume VolumeReport `json:"volume,omitzero"`

	// WALDisk and WALVolume say the same of the volume of the write-ahead log, if
	// it has one of its own.
	WALDisk   string       `json:"walDisk,omitempty"`
	WALVolume VolumeReport `json:"walVolume,omitzero"`

	// Reason in one word why the member does not start, if it does not: for
	// instance VolumeOfAnother, WaitingForFormerLeader or ImageUnsuitable.
	Reason string `json:"reason,omitempty"`

	// Message says more about the reason, and what to do.
	Message string `json:"message,omitempty"`

	// Backup says how archive and backups are, where there are backups.
	Backup BackupReport `json:"backup,omitzero"`

	// RestorePoints that can be restored, the last ones, oldest first. The leader
	// reports them.
	RestorePoints []RestorePoint `json:"restorePoints,omitempty"`

	// Following says how the archive is that the Database follows, if it does. The leader
	// reports it.
	Following FollowReport `json:"following,omitzero"`

	// Import says how the import from another server is, if there is one. The leader
	// reports it.
	//
	// +optional
	Import *ImportReport `json:"import,omitempty"`

	// Reinitialize says what became of the last request to copy this member again.
	Reinitialize ReinitializeReport `json:"reinitialize,omitzero"`

	// Fence says what became of the last request to stop this member.
	Fence MemberFenceReport `json:"fence,omitzero"`

	// Queries says how queries for metrics do, where there are any.
	//
	// +optional
	Queries *QueriesReport `json:"queries,omitempty"`
}
