// SPDX-License-Identifier: Apache-2.0

package members

// Reasons of a Report, which every engine's members have: why a member does not do what it should.
const (
	// ReasonVolumeOfAnother: the volume belongs to another Database, or to none that left its mark.
	ReasonVolumeOfAnother = "VolumeOfAnother"
	// ReasonDataOfAnotherVersion: another major version of the server wrote the data.
	ReasonDataOfAnotherVersion = "DataOfAnotherVersion"
	// ReasonImageUnsuitable: the image lacks a program that the member needs.
	ReasonImageUnsuitable = "ImageUnsuitable"
	// ReasonWaitingForFormerLeader: the data is a standby's, or older than another member's.
	ReasonWaitingForFormerLeader = "WaitingForFormerLeader"
	// ReasonWaitingForMembers: other members have not reported yet what is on their volumes.
	ReasonWaitingForMembers = "WaitingForMembers"
	// ReasonWaitingForBucket: it is unknown whether there are backups under the name of the Database.
	ReasonWaitingForBucket = "WaitingForBucket"
	// ReasonBackupsExist: there are backups under the name of a Database that would begin empty.
	ReasonBackupsExist = "BackupsExist"
	// ReasonRestoreFailed: the Database cannot begin with the backup that it should begin with.
	ReasonRestoreFailed = "RestoreFailed"
	// ReasonUpgrading: this member upgrades the data; its UpgradeReport has the phase.
	ReasonUpgrading = "Upgrading"
	// ReasonWaitingForUpgrade: another member upgrades the data.
	ReasonWaitingForUpgrade = "WaitingForUpgrade"
	// ReasonFenced: this member was the leader, and has stopped for a fence.
	ReasonFenced = "Fenced"
	// ReasonCannotFence: this member is the leader, and cannot stop for a fence without losing something.
	ReasonCannotFence = "CannotFence"
	// ReasonStopped: this member is stopped, because a person requests it.
	ReasonStopped = "MemberFenced"
	// ReasonStandbyLost: this standby cannot follow, because its leader has removed what it needs next.
	ReasonStandbyLost = "StandbyLost"
	// ReasonMembersApart: this standby does not hear from another member, and the leader hears from both.
	ReasonMembersApart = "MembersApart"
)
