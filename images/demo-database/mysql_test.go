// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"
)

func TestMySQLConfig(t *testing.T) {
	got, err := mysqlConfig("mysql://orders_api:p%40ss%2Fword@orders-db-rw.team-a.svc:3306/orders?ssl-mode=VERIFY_IDENTITY", "", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if got.User != "orders_api" || got.Passwd != "p@ss/word" || got.Addr != "orders-db-rw.team-a.svc:3306" || got.DBName != "orders" {
		t.Errorf("The parts of the URI are read: %+v", got)
	}
	if got.TLS == nil || got.TLS.ServerName != "orders-db-rw.team-a.svc" || got.TLS.InsecureSkipVerify {
		t.Errorf("The server has to prove its name: %+v", got.TLS)
	}
	if _, err := mysqlConfig("mysql://api:secret@host:port/orders", "", time.Second); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("A URI that cannot be understood is an error that does not quote the password: %v", err)
	}
	if _, err := mysqlConfig("mysql://api:secret@host/orders", "testdata/none.crt", time.Second); err == nil {
		t.Error("An authority that is not there is an error.")
	}
}
