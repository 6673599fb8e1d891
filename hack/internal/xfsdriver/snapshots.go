// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// ofSnapshots is what the names of their files end with. Before it stands the volume that a snapshot shows.
const ofSnapshots = ".snapshot"

// CreateSnapshot copies the file of a volume of this node. Its file system is frozen meanwhile, so that the copy shows one moment.
func (c *controller) CreateSnapshot(_ context.Context, req *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if len(req.GetParameters()) > 0 {
		return nil, status.Errorf(codes.InvalidArgument, "cannot use parameters, there are none: %v", req.GetParameters())
	}
	s, err := c.disks.snapshot(req.GetName(), req.GetSourceVolumeId())
	return &csi.CreateSnapshotResponse{Snapshot: s}, err
}

// DeleteSnapshot of this node.
func (c *controller) DeleteSnapshot(_ context.Context, req *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	path, err := c.disks.snapshotPath(req.GetSnapshotId())
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, status.Errorf(codes.Internal, "cannot remove snapshot %q: %v", req.GetSnapshotId(), err)
	}
	return &csi.DeleteSnapshotResponse{}, nil
}

// snapshotPath of an id, which is the name of its file.
func (d disks) snapshotPath(id string) (string, error) {
	if id == "" || filepath.Base(id) != id || id[0] == '.' || !strings.HasSuffix(id, ofSnapshots) {
		return "", status.Errorf(codes.InvalidArgument, "cannot find snapshot %q: that is no name of a snapshot", id)
	}
	return filepath.Join(d.folder, id), nil
}

// snapshot of a volume, unless it is there.
func (d disks) snapshot(name, volume string) (*csi.Snapshot, error) {
	from, err := d.path(volume)
	if err != nil {
		return nil, err
	}
	id := name + "." + volume + ofSnapshots
	path, err := d.snapshotPath(id)
	if err != nil {
		return nil, err
	}
	if _, err := d.size(volume); err != nil {
		return nil, err
	}
	if others, _ := filepath.Glob(filepath.Join(d.folder, name+".*"+ofSnapshots)); len(others) > 0 && others[0] != path {
		return nil, status.Errorf(codes.AlreadyExists, "snapshot %q is there, of another volume", name)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := d.still(volume, func() error { return copied(from, path) }); err != nil {
			return nil, status.Errorf(codes.Internal, "cannot make snapshot %q of volume %q: %v", name, volume, err)
		}
		info, err = os.Stat(path)
	}
	if err != nil {
		return nil, status.Errorf(codes.Internal, "cannot see snapshot %q: %v", name, err)
	}
	return &csi.Snapshot{SnapshotId: id, SourceVolumeId: volume, SizeBytes: info.Size(), CreationTime: timestamppb.New(info.ModTime()), ReadyToUse: true}, nil
}

// copied file, which appears as a whole or not at all. What was never written takes no room in the copy either.
func copied(from, to string) error {
	next := to + ".new"
	if out, err := exec.Command("cp", "--reflink=auto", "--sparse=always", from, next).CombinedOutput(); err != nil {
		return errors.Join(err, errors.New(strings.TrimSpace(string(out))), os.Remove(next))
	}
	now := time.Now()
	return errors.Join(os.Chtimes(next, now, now), os.Rename(next, to))
}

// still file system of a volume while something is done, if it is mounted.
func (d disks) still(volume string, do func() error) error {
	device, err := d.device(volume)
	if err != nil {
		return err
	}
	if device == "" {
		return do()
	}
	at, err := mountPoint(device)
	if err != nil || at == "" {
		return errors.Join(err, do())
	}
	f, err := os.Open(filepath.Clean(at))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	const freeze, thaw = 0xc0045877, 0xc0045878
	if err := unix.IoctlSetInt(int(f.Fd()), freeze, 0); err != nil {
		return err
	}
	return errors.Join(do(), unix.IoctlSetInt(int(f.Fd()), thaw, 0))
}

// mountPoint of a device, or "".
func mountPoint(device string) (string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		mounted, source := strings.Fields(before), strings.Fields(after)
		if len(mounted) > 4 && len(source) > 1 && source[1] == device {
			return mounted[4], nil
		}
	}
	return "", lines.Err()
}

// fill a volume with a snapshot, unless the volume is there. A snapshot of another node is reported as a lack of room, for which Kubernetes
// chooses another node.
func (d disks) fill(volume, snapshot string, bytes int64) error {
	from, err := d.snapshotPath(snapshot)
	if err != nil {
		return err
	}
	to, err := d.path(volume)
	if err != nil {
		return err
	}
	if has, err := d.size(volume); err == nil && has == bytes {
		return nil
	}
	info, err := os.Stat(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return status.Errorf(codes.ResourceExhausted, "snapshot %q is not on this node", snapshot)
	case err != nil:
		return status.Errorf(codes.Internal, "cannot see snapshot %q: %v", snapshot, err)
	case info.Size() > bytes:
		return status.Errorf(codes.OutOfRange, "snapshot %q takes %d bytes, and %d are requested", snapshot, info.Size(), bytes)
	}
	next := to + ".filled"
	if err := errors.Join(copied(from, next), os.Truncate(next, bytes), os.Rename(next, to)); err != nil {
		return status.Errorf(codes.Internal, "cannot fill volume %q: %v", volume, err)
	}
	return nil
}
