// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
)

const (
	// freshLimit is how long a server may take to begin on data that was just made, and freshMemory what it takes for pages.
	freshLimit  = 2 * time.Minute
	freshMemory = 64 << 20
)

// Make data where there is none, with the first accounts and no transaction. It is there as a whole or not at all.
//
// A member that joins a group has its data replaced by the group's. It needs the accounts all the same, because members call it back while
// it joins.
func Make(ctx context.Context) error {
	if empty, err := volume.Empty(mysqlmember.FolderData); err != nil || !empty {
		return err
	}
	if err := os.RemoveAll(layout.Fresh); err != nil {
		return fmt.Errorf("cannot make data: %w", err)
	}
	if err := Initialize(ctx, layout.Fresh); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, freshLimit)
	defer cancel()
	// The rights that members need are known to the server with their plugins only.
	fresh := Scratch{
		Data: layout.Fresh, Folder: mysqlmember.FolderPrivate, Account: "root", Memory: freshMemory, Plugins: plugins, Log: io.Discard,
		Settings: []string{"group-replication-start-on-boot=OFF", "super-read-only=OFF"},
	}
	running, err := fresh.Start(ctx)
	if err != nil {
		return fmt.Errorf("cannot make data: %w", err)
	}
	if err := running.FirstAccounts(ctx); err != nil {
		running.Kill()
		return fmt.Errorf("cannot make data: %w: %s", err, running.Cause())
	}
	if err := running.Stop(); err != nil {
		return fmt.Errorf("cannot make data: %w", err)
	}
	if err := Tidy(layout.Fresh); err != nil {
		return err
	}
	return Install(layout.Fresh)
}

// Install data that is whole as the member's. It is there as a whole or not at all, also after a loss of power.
func Install(whole string) error {
	if err := sync(whole); err != nil {
		return fmt.Errorf("cannot bring data to the disk: %w", err)
	}
	// What is in the way is an empty folder, or data that this is to replace.
	if err := os.RemoveAll(mysqlmember.FolderData); err != nil {
		return fmt.Errorf("cannot make data: %w", err)
	}
	if err := os.Rename(whole, mysqlmember.FolderData); err != nil {
		return fmt.Errorf("cannot make data: %w", err)
	}
	return durable.Sync(filepath.Dir(mysqlmember.FolderData))
}

// sync brings all that was written to the file system of a folder to the disk.
func sync(folder string) error {
	d, err := os.Open(filepath.Clean(folder))
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(d.Fd())), d.Close())
}
