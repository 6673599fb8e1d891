// SPDX-License-Identifier: Apache-2.0

// Command sigstore stands in for what releases and Crossplane use of Sigstore, where there is no internet or nothing may be left behind: a
// transparency log, and the trust roots that name it. For tests only; its keys are new each time.
//
//	go -C hack/tools/sigstore run . --folder DIR --listen 127.0.0.1:3000
//
// It writes DIR/root, which Crossplane reads as .sigstore/root in its package cache, and serves the log until it ends.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/capstan-dev/capstan/hack/internal/cosign/logtest"
)

func main() {
	folder := flag.String("folder", "", "Folder for the trust roots.")
	listen := flag.String("listen", "127.0.0.1:0", "Address of the transparency log.")
	flag.Parse()
	if err := run(*folder, *listen); err != nil {
		fmt.Fprintln(os.Stderr, "sigstore:", err)
		os.Exit(1)
	}
}

// run listens before it writes the file ready, so that a program that finds it finds the roots and the log.
func run(folder, address string) error {
	if folder == "" {
		return errors.New("cannot write trust roots: --folder is missing")
	}
	log, err := logtest.New()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("cannot serve a transparency log: %w", err)
	}
	if err := writeRoots(folder, log.Public()); err != nil {
		return errors.Join(err, listener.Close())
	}
	if err := os.WriteFile(filepath.Join(folder, "ready"), nil, 0o600); err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: log, ReadHeaderTimeout: time.Minute}
	return server.Serve(listener)
}
