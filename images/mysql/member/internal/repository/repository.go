// SPDX-License-Identifier: Apache-2.0

// Package repository keeps physical copies and binary logs of a Database in a bucket or on a volume, which a host serves. Copies are snapshots of restic, which has a
// repository of its own for each stanza. Everything else are objects beside them, so that a member learns what there is by a few small
// requests and without restic:
//
//	<path>/capstan/repository.json          whether things are encrypted, and the key of objects, locked with the passphrase
//	<path>/capstan/<name>.json              small objects, such as restore points
//	<path>/stanza/<stanza>.json             the group whose data a stanza takes
//	<path>/backup/<stanza>/<label>.json     the backups there are: one whose object is missing does not count
//	<path>/copy/<stanza>/                   the repository of restic
//	<path>/log/<stanza>/<server>/<file>.zst binary logs, with .age at the end when they are encrypted
//	<path>/log/<stanza>/<server>/index/     what is in the logs: an object for each 64 of them
package repository

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"filippo.io/age"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/bucket"
	host "github.com/capstan-dev/capstan/images/member/vault"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

// Errors of what is in a repository. Errors of its Secrets and its key are a *NotReadyError.
var (
	// ErrForeign: the stanza takes the data of another group. Nothing is written to it.
	ErrForeign = errors.New("the stanza has the data of another group")
	// ErrDiffers: there is a binary log of this name with another content.
	ErrDiffers = errors.New("there is one of this name with another content")
	// ErrDamaged: what came from the bucket is not what was brought there.
	ErrDamaged = errors.New("it is damaged")
	// ErrNotFound: there is no such backup or binary log.
	ErrNotFound = errors.New("the repository has none of that name")
	// ErrChanged: another program has changed the object at this moment. The next try reads it again.
	ErrChanged = errors.New("another program has just changed it")
	// ErrBusy: another program uses the copies of the stanza, or one that was killed did less than half an hour ago.
	ErrBusy = errors.New("another backup or restore uses the copies")
)

// NotReadyError is why a repository cannot be used as long as its Secrets are as they are.
type NotReadyError = bucket.NotReadyError

// A Place is where a repository is.
type Place struct {
	// Path in the bucket, and Stanza there. Without a Stanza nothing can be written, and Backups are the ones of all stanzas.
	Path, Stanza string
	// Secret is the folder of the bucket's connection Secret, and Key the folder of the key; "" when nothing is encrypted.
	Secret, Key string
	// Server is host and port of the volume that the repository is on, when the Secret is the certificate that opens it. Which of both it is the Secret
	// says: a pod that was made before backups moved continues with what it has until it is made again.
	Server string
	// Scratch is a folder for files that are of no use after the program ends. Default: the system's folder for such files.
	Scratch string
}

// A Repository in a bucket or on a volume. Several goroutines may use it.
type Repository struct {
	place Place
	// connection of the bucket, or the volume served at a host.
	connection bucket.Connection
	served     *served
	passphrase string
	objects    *objects

	mu sync.Mutex
	// seal is known once there is something in the repository.
	seal *seal
	// read are indexes of logs that were read, by key.
	read map[string]readIndex
	// taken are manifests of backups that were read, by their entries.
	taken map[entry]manifest
	// unreadable are the backups that were left out last.
	unreadable error
}

// A Backup is a physical copy.
type Backup struct {
	// Label is unique in the repository. Save gives it.
	Label string `json:"label"`
	// Stanza that it belongs to, which Save sets. Series of the server, as in 9.7, with its Version, as in 9.7.4.
	Stanza  string `json:"stanza"`
	Series  string `json:"series"`
	Version string `json:"version"`
	// Began and Ended are when the copy was taken. Default of Ended: when Save ended.
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
	// Set has the transactions in the copy, and Group is the name of the group that it is of.
	Set   gtid.Set `json:"set"`
	Group string   `json:"group"`
	// Leader has the transactions that the leader had executed after Began. It is empty when the leader did not answer.
	Leader gtid.Set `json:"leader,omitzero"`
	// Size of the data, and what the backup Added to the bucket, in bytes. Save sets both.
	Size  int64 `json:"size"`
	Added int64 `json:"added"`
}

// Until is what a member of the group had executed with the backup. It has the first transaction of the group, also before there is one: a
// group that began with less than others is another history from its beginning.
func (b Backup) Until() gtid.Set {
	var first gtid.Builder
	if b.Group == "" || b.Set.From(b.Group) || first.Add(b.Group, "", 1, 1) != nil {
		return b.Set
	}
	return b.Set.Union(first.Set())
}

// A Log is a binary log that is closed.
type Log struct {
	// Server is the UUID of the server that wrote it, and File its name, as in binlog.000012.
	Server string `json:"server"`
	File   string `json:"file"`
	// Previous has the transactions before it, as the log says, and Set its own.
	Previous gtid.Set `json:"previous"`
	Set      gtid.Set `json:"set"`
	// First and Last are when its first and its last transaction were committed; zero without any.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Size of the file in bytes, and SHA256 of its content in hexadecimal digits. SaveLog sets both.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Until is all that its server had executed at its end.
func (l Log) Until() gtid.Set { return l.Previous.Union(l.Set) }

// Names that are a step of a key.
var steps = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,200}$`)

// Open the repository at a place. The error is a *NotReadyError when a Secret or the key is missing or wrong. Nothing is written.
func Open(ctx context.Context, p Place) (*Repository, error) {
	if p.Stanza != "" && !steps.MatchString(p.Stanza) {
		return nil, fmt.Errorf("cannot open the repository: %q cannot be the name of a stanza", p.Stanza)
	}
	r := &Repository{place: p, read: map[string]readIndex{}, taken: map[entry]manifest{}}
	if err := r.connect(); err != nil {
		return nil, err
	}
	var err error
	if p.Key != "" {
		if r.passphrase, err = bucket.ReadKey(filepath.Join(p.Key, mysqlmember.FileBackupKey)); err != nil {
			return nil, err
		}
	}
	if _, err := r.sealed(ctx, false); err != nil {
		return nil, err
	}
	return r, nil
}

// connect to the place that the Secret names. Nothing is sent yet.
func (r *Repository) connect() (err error) {
	if r.place.Server != "" && !host.IsBucket(r.place.Secret) {
		if r.served, err = openServed(r.place.Server, r.place.Secret); err == nil {
			r.objects = &objects{store: r.served, place: host.Place}
		}
		return err
	}
	if r.connection, err = bucket.Read(r.place.Secret, nil); err == nil {
		r.objects, err = openBucket(r.connection)
	}
	return err
}

// Where the repository is, for people.
func (r *Repository) Where() string { return r.place.Where() }

// Where it is, for people.
func (p Place) Where() string {
	if p.Server != "" && !host.IsBucket(p.Secret) {
		return host.Place
	}
	return "the bucket"
}

// Usage of the volume that the repository is on. It reports whether it is on one.
func (r *Repository) Usage(ctx context.Context) (host.Usage, bool, error) {
	if r.served == nil {
		return host.Usage{}, false, nil
	}
	u, err := r.served.usage(ctx)
	return u, true, err
}

// key of an object in the bucket.
func (r *Repository) key(steps ...string) string {
	return strings.TrimLeft(path.Join(append([]string{r.place.Path}, steps...)...), "/")
}

// stanza that is written to.
func (r *Repository) stanza() (string, error) {
	if r.place.Stanza == "" {
		return "", errors.New("cannot use the repository: no stanza is chosen")
	}
	return r.place.Stanza, nil
}

// A lock is the object that says how a repository is sealed.
type lock struct {
	// Version of the layout.
	Version int `json:"version"`
	// Key of objects, encrypted with the passphrase; "" when nothing is encrypted.
	Key string `json:"key,omitempty"`
}

// layoutVersion is the layout of a repository that this code knows.
const layoutVersion = 1

// sealed is how objects are sealed: nil when the repository is empty and must not be made.
func (r *Repository) sealed(ctx context.Context, create bool) (*seal, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seal != nil {
		return r.seal, nil
	}
	key := r.key("capstan", "repository.json")
	var l lock
	found, err := r.objects.readJSON(ctx, key, &l)
	if err != nil {
		return nil, err
	}
	if !found {
		if !create {
			return nil, nil //nolint:nilnil // An empty repository has no seal yet.
		}
		l = lock{Version: layoutVersion}
		if r.passphrase != "" {
			if l.Key, err = newKey(r.passphrase); err != nil {
				return nil, err
			}
		}
		// Another program may make it at the same moment: what is there counts.
		if err := r.objects.create(ctx, key, l); err != nil {
			return nil, err
		}
		if _, err := r.objects.readJSON(ctx, key, &l); err != nil {
			return nil, err
		}
	}
	if l.Version > layoutVersion {
		return nil, fmt.Errorf("cannot use the repository at %s: it has layout %d, and this image knows layouts up to %d: use an image of the version that made it",
			r.place.Path, l.Version, layoutVersion)
	}
	s, err := l.open(r.passphrase)
	if err == nil {
		r.seal = s
	}
	return s, err
}

// open the lock with a passphrase, or with none.
func (l lock) open(passphrase string) (*seal, error) {
	switch {
	case l.Key == "" && passphrase == "":
		return &seal{}, nil
	case l.Key == "":
		return nil, mismatch("what is there is not encrypted, and a key is given: use another path, or no key")
	case passphrase == "":
		return nil, mismatch("what is there is encrypted, and no key is given: give the key that it was made with")
	}
	identity, err := openKey(l.Key, passphrase)
	var wrong *age.NoIdentityMatchError
	if errors.As(err, &wrong) {
		return nil, mismatch("what is there does not open with the key that is given: give the key that it was made with")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the key of the repository: %w", err)
	}
	return &seal{identity}, nil
}

func mismatch(message string) *NotReadyError {
	return &NotReadyError{Message: message, Key: members.KeyMismatch}
}

// owner of a stanza.
type owner struct {
	// Group is the first name of the group, and Later are names of groups that took its place since then, in their order.
	Group string   `json:"group"`
	Later []string `json:"later,omitempty"`
}

// takes reports whether a backup is of the owner. After an outage, a group of another name may begin with less than all transactions: it has some
// of the first one, or it is known because its leader said so.
func (o owner) takes(b Backup) bool {
	return o.Group == b.Group || slices.Contains(o.Later, b.Group) || b.Set.From(o.Group)
}

// Claim the stanza for a group, by the first name in its generation: from then on it takes data of no other. The error is ErrForeign when another one
// has it. What the group is called at present is noted when that is another name; "" when it is unknown. Only the leader may claim a stanza.
func (r *Repository) Claim(ctx context.Context, group, present string) error {
	has, err := r.claim(ctx, group)
	switch {
	case err != nil:
		return err
	case has.Group != group:
		return fmt.Errorf("cannot use the stanza %s for the group %s: %w", r.place.Stanza, group, ErrForeign)
	case present == "" || present == group || slices.Contains(has.Later, present):
		return nil
	}
	has.Later = append(has.Later, present)
	return r.objects.writeJSON(ctx, r.key("stanza", r.place.Stanza+".json"), has)
}

// claim the stanza unless it is claimed, and return whose it is.
func (r *Repository) claim(ctx context.Context, group string) (owner, error) {
	stanza, err := r.stanza()
	if err != nil {
		return owner{}, err
	}
	if group == "" {
		return owner{}, errors.New("cannot claim a stanza for a group without a name")
	}
	if _, err := r.sealed(ctx, true); err != nil {
		return owner{}, err
	}
	key := r.key("stanza", stanza+".json")
	var has owner
	found, err := r.objects.readJSON(ctx, key, &has)
	if err == nil && !found {
		if err = r.objects.create(ctx, key, owner{Group: group}); err == nil {
			_, err = r.objects.readJSON(ctx, key, &has)
		}
	}
	return has, err
}

// claimFor data, which may be of a group with another name by now.
func (r *Repository) claimFor(ctx context.Context, b Backup) error {
	has, err := r.claim(ctx, b.Group)
	if err == nil && !has.takes(b) {
		err = fmt.Errorf("cannot use the stanza %s for data of the group %s: %w", r.place.Stanza, b.Group, ErrForeign)
	}
	return err
}

// ReadObject reads the JSON of a small object beside the backups, such as restore-points, into a value. It reports whether there is one.
func (r *Repository) ReadObject(ctx context.Context, name string, v any) (bool, error) {
	return r.objects.readJSON(ctx, r.key("capstan", name+".json"), v)
}

// WriteObject writes a value as JSON to a small object. Like the list of backups it is not encrypted.
func (r *Repository) WriteObject(ctx context.Context, name string, v any) error {
	if _, err := r.sealed(ctx, true); err != nil {
		return err
	}
	return r.objects.writeJSON(ctx, r.key("capstan", name+".json"), v)
}

// ChangeObject reads the JSON of a small object into a pointer, as ReadObject does, lets a function change the value, and writes it. The error is
// ErrChanged, and nothing is written, when another program has written the object meanwhile.
func (r *Repository) ChangeObject(ctx context.Context, name string, v any, change func() error) error {
	if _, err := r.sealed(ctx, true); err != nil {
		return err
	}
	key := r.key("capstan", name+".json")
	tag, _, err := r.objects.readTagged(ctx, key, v)
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot write %s in %s: %w", key, r.objects.place, err)
	}
	written, err := r.objects.replace(ctx, key, tag, bytes.NewReader(raw))
	if err == nil && !written {
		err = fmt.Errorf("cannot write %s in %s: %w", key, r.objects.place, ErrChanged)
	}
	return err
}
