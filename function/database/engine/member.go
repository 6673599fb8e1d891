// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Recorded is what the files of members keep of a Database for good.
type Recorded struct {
	// Volumes names the members that had a volume before the Database was created. An empty list means that the Database is new,
	// nil that it is unknown.
	Volumes *[]string

	// Begun reports that members have had data. What they record of it themselves can be lost.
	Begun bool

	// Snapshot that the generation begins with. It may be removed once its volume is filled.
	Snapshot *Snapshot
}

// A Member is what the program in the members of a generation has to know beyond the configuration of its server. Each engine has a
// file of its own for it, which only the engine and its program read.
type Member struct {
	Recorded

	// Generation that the member belongs to, from 1. Domain ends the host names of its pods.
	Generation int
	Domain     string

	// Databases that should exist, and Extensions that each should have, sorted.
	Databases, Extensions []string

	// Pooled reports that there are poolers.
	Pooled bool

	// Slots and Publications are what consumers of changes read, and Replicators the logins that may read them.
	Slots        []Slot
	Publications []Publication
	Replicators  []string

	// Queries whose results are exported as metrics.
	Queries []members.Query

	// Reinitialize is the request to copy a member again; nil without one.
	Reinitialize *members.Reinitialize

	// Fence is the request to keep a member stopped; nil without one.
	Fence *members.MemberFence

	// Backup says how backups are taken; nil when there never were any.
	Backup *Backup

	// From is the backup that the generation begins with, and Upgrade the upgrade; nil without one.
	From    *Source
	Upgrade *Upgrade

	// Import is the running server that fills the Database; nil without one.
	Import *Import

	// Dumps fill the Database; nil without any.
	Dumps *Dumps

	// TakeOver is what this generation waits for before it has clients; nil for nothing. An engine whose members do not know it leaves it out:
	// then the function alone switches clients.
	TakeOver *TakeOver
}

// A TakeOver of the clients of another generation, whose members stop first.
type TakeOver struct {
	// ID of the restore, Database the value of the label of the other generation's pods, and Scope the name that its members find each
	// other by.
	ID, Database, Scope string
}

// Dumps in a bucket. Each fills a database once.
type Dumps struct {
	Databases []v1alpha1.DumpedDatabase

	// Ended reports that consumers have logins: nothing is restored any more, also into empty data.
	Ended bool
}

// A Slot keeps changes of a database until its consumer has read them.
type Slot struct{ Name, Database, Plugin string }

// A Publication names the tables of a database whose changes can be read.
type Publication struct {
	Name, Database string

	// Tables as schema.table, sorted. AllTables are all there are, now and later.
	Tables    []string
	AllTables bool
}

// Backup says how backups are taken.
type Backup struct {
	// Enabled reports that backups are taken and changes are archived.
	Enabled bool

	// Stanza is the name that the backups of this data are kept under, in the repository at a Path of the bucket. Repository is
	// the host that serves it when it is in a volume.
	Stanza, Path, Repository string

	// Queue is how many bytes may wait for the archive before the oldest are dropped.
	Queue int64
	// UntilLow lets more wait than Queue as long as the volume is not nearly full.
	UntilLow bool

	// Members by the host names of their pods.
	Members []string

	// RetentionDays is how many days backups are kept, or RetentionFull how many full ones; the other one is 0.
	RetentionDays, RetentionFull int

	// Former are the names under which generations that are not kept any more left backups. They expire as well.
	Former []string

	// StartEmpty lets the Database begin without data although there are backups under its name.
	StartEmpty bool

	// RestorePoint is the name to give the current moment, once.
	RestorePoint string

	// Encrypted reports that the repository is encrypted, with a key that is mounted.
	Encrypted bool

	// Verify says what a restored backup has to prove; nil when backups are not verified.
	Verify *Verify

	// Processes of the backup tool at a time; 0 for as many as it has by itself.
	Processes int64
}

// Source is the backup that a generation begins with.
type Source struct {
	// Path of the repository in the bucket. Repository is the host that serves it when it is in a volume, and Either that host
	// when the mounted Secret decides.
	Path, Repository, Either string

	// Stanza in the repository; "" for the one with the most recent backup.
	Stanza string

	// Follow reports that the data follows the source, or did before it was promoted.
	Follow bool

	// At is the time to restore, and RestorePoint the name of a moment; without both, the latest there is.
	At           *time.Time
	RestorePoint string

	// Encrypted reports that the repository is encrypted, with a key that is mounted.
	Encrypted bool

	// Processes of the backup tool at a time; 0 for as many as it has by itself.
	Processes int64

	// Mask is what is changed in the restored data before any client can connect; nil for nothing.
	Mask *Mask

	// Snapshot that the volume of a member was filled from; nil without one.
	Snapshot *Snapshot
}

// A Snapshot of a volume of another Database.
type Snapshot struct {
	// Identity of that Database, which the volume carries, and Stanza with its archive.
	Identity, Stanza string

	// Member whose volume was filled. The others wait, and copy from it.
	Member string
}

// Mask is what is changed in restored data.
type Mask struct {
	// Statements in the order in which they run.
	Statements []Statement

	// Preload names the libraries that the members' server loads at its start.
	Preload []string
}

// A Statement of SQL, run as the owner of a database.
type Statement struct{ Database, SQL string }

// Verify says how backups are verified.
type Verify struct {
	// Assertions about the data.
	Assertions []Assertion

	// MaxRestoreSeconds is how long a restore may take; 0 for as long as the verification.
	MaxRestoreSeconds int64

	// Preload names the libraries that the members' server loads at its start.
	Preload []string
}

// An Assertion is a statement of SQL that has to yield true.
type Assertion struct{ Database, SQL string }

// Upgrade is the upgrade that a generation begins with: its data is a copy of an earlier generation's, of an earlier version.
type Upgrade struct {
	// ID of the upgrade, and of the fence that stops the earlier generation.
	ID string

	// From is the version of the earlier generation, Database the value of the label of its pods, Scope the name that its members
	// find each other by.
	From, Database, Scope string

	// Member that does the upgrade. The others wait, and copy from it.
	Member string
}
