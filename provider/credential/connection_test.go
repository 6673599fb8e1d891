// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
	"k8s.io/utils/ptr"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

func TestBinding(t *testing.T) {
	members := []v1alpha1.HostPort{{Host: "db-a", Port: 5432}, {Host: "db-b", Port: 5433}}
	cases := map[string]struct {
		reason string
		conn   v1alpha1.Connection
		want   map[string]string
	}{
		"PostgreSQL": {
			reason: "One host.",
			conn: v1alpha1.Connection{
				Type: "postgresql", Provider: "capstan", Host: "db-rw.shop.svc", Port: ptr.To[int32](5432),
				Database: "orders", Username: "shop",
				Options:     map[string]v1alpha1.OptionValue{"sslmode": "verify-full", "application_name": "a b"},
				JDBCOptions: map[string]v1alpha1.OptionValue{"sslmode": "verify-full"},
			},
			want: map[string]string{
				"type": "postgresql", "provider": "capstan", "host": "db-rw.shop.svc", "port": "5432",
				"database": "orders", "username": "shop",
				"uri":      "postgresql://shop:p%40ss@db-rw.shop.svc:5432/orders?application_name=a%20b&sslmode=verify-full",
				"jdbc-url": "jdbc:postgresql://db-rw.shop.svc:5432/orders?sslmode=verify-full",
			},
		},
		"PostgreSQLMembers": {
			reason: "Members stand for a host, and clients look for the one that takes writes.",
			conn:   v1alpha1.Connection{Type: "postgresql", Hosts: members, Database: "orders", Username: "shop"},
			want: map[string]string{
				"type": "postgresql", "host": "db-a", "port": "5432", "database": "orders", "username": "shop",
				"uri":            "postgresql://shop:p%40ss@db-a:5432,db-b:5433/orders?target_session_attrs=read-write",
				"multi-host-uri": "postgresql://shop:p%40ss@db-a:5432,db-b:5433/orders?target_session_attrs=read-write",
				"jdbc-url":       "jdbc:postgresql://db-a:5432,db-b:5433/orders?targetServerType=primary",
			},
		},
		"PostgreSQLBoth": {
			reason: "With a host the members are in the URI for several hosts only, and options win.",
			conn: v1alpha1.Connection{
				Type: "postgresql", Host: "db-rw", Port: ptr.To[int32](5432), Hosts: members, Username: "shop",
				Options: map[string]v1alpha1.OptionValue{"target_session_attrs": "any"},
			},
			want: map[string]string{
				"type": "postgresql", "host": "db-rw", "port": "5432", "username": "shop",
				"uri":            "postgresql://shop:p%40ss@db-rw:5432?target_session_attrs=any",
				"multi-host-uri": "postgresql://shop:p%40ss@db-a:5432,db-b:5433?target_session_attrs=any",
				"jdbc-url":       "jdbc:postgresql://db-rw:5432/",
			},
		},
		"Endpoints": {
			reason: "Each other way has keys of its own, and no option that chooses among members.",
			conn: v1alpha1.Connection{
				Type: "postgresql", Host: "db-rw", Port: ptr.To[int32](5432), Database: "orders", Username: "shop",
				Endpoints:   []v1alpha1.Endpoint{{Name: "pooler", Host: "db-pooler", Port: 5432}, {Name: "external", Host: "2001:db8::1", Port: 15432}},
				Options:     map[string]v1alpha1.OptionValue{"sslmode": "verify-full", "target_session_attrs": "prefer-standby"},
				JDBCOptions: map[string]v1alpha1.OptionValue{"sslmode": "verify-full", "targetServerType": "preferSecondary"},
			},
			want: map[string]string{
				"type": "postgresql", "host": "db-rw", "port": "5432", "database": "orders", "username": "shop",
				"uri":         "postgresql://shop:p%40ss@db-rw:5432/orders?sslmode=verify-full&target_session_attrs=prefer-standby",
				"jdbc-url":    "jdbc:postgresql://db-rw:5432/orders?sslmode=verify-full&targetServerType=preferSecondary",
				"pooler-host": "db-pooler", "pooler-port": "5432",
				"pooler-uri":      "postgresql://shop:p%40ss@db-pooler:5432/orders?sslmode=verify-full",
				"pooler-jdbc-url": "jdbc:postgresql://db-pooler:5432/orders?sslmode=verify-full",
				"external-host":   "2001:db8::1", "external-port": "15432",
				"external-uri":      "postgresql://shop:p%40ss@[2001:db8::1]:15432/orders?sslmode=verify-full",
				"external-jdbc-url": "jdbc:postgresql://[2001:db8::1]:15432/orders?sslmode=verify-full",
			},
		},
		"EndpointsOfOthers": {
			reason: "A service without a JDBC URL has none there either.",
			conn:   v1alpha1.Connection{Type: "rabbitmq", Host: "mq", Port: ptr.To[int32](5672), Username: "shop", Endpoints: []v1alpha1.Endpoint{{Name: "external", Host: "mq.example.org", Port: 5671}}},
			want: map[string]string{
				"type": "rabbitmq", "host": "mq", "port": "5672", "username": "shop", "uri": "amqp://shop:p%40ss@mq:5672",
				"external-host": "mq.example.org", "external-port": "5671", "external-uri": "amqp://shop:p%40ss@mq.example.org:5671",
			},
		},
		"MySQL": {
			reason: "MySQL has several hosts in the same form; what its driver fails over to takes writes, too.",
			conn:   v1alpha1.Connection{Type: "mysql", Hosts: members, Database: "orders", Username: "shop"},
			want: map[string]string{
				"type": "mysql", "host": "db-a", "port": "5432", "database": "orders", "username": "shop",
				"uri":            "mysql://shop:p%40ss@db-a:5432,db-b:5433/orders",
				"multi-host-uri": "mysql://shop:p%40ss@db-a:5432,db-b:5433/orders",
				"jdbc-url":       "jdbc:mysql://db-a:5432,db-b:5433/orders?failOverReadOnly=false",
			},
		},
		"MySQLService": {
			reason: "One host, with the names that its drivers have for options.",
			conn: v1alpha1.Connection{
				Type: "mysql", Host: "db-rw.shop.svc", Port: ptr.To[int32](3306), Hosts: members, Database: "orders", Username: "shop",
				Options:     map[string]v1alpha1.OptionValue{"ssl-mode": "VERIFY_IDENTITY"},
				JDBCOptions: map[string]v1alpha1.OptionValue{"sslMode": "VERIFY_IDENTITY"},
			},
			want: map[string]string{
				"type": "mysql", "host": "db-rw.shop.svc", "port": "3306", "database": "orders", "username": "shop",
				"uri":            "mysql://shop:p%40ss@db-rw.shop.svc:3306/orders?ssl-mode=VERIFY_IDENTITY",
				"multi-host-uri": "mysql://shop:p%40ss@db-a:5432,db-b:5433/orders?ssl-mode=VERIFY_IDENTITY",
				"jdbc-url":       "jdbc:mysql://db-rw.shop.svc:3306/orders?sslMode=VERIFY_IDENTITY",
			},
		},
		"MariaDB": {
			reason: "MariaDB's driver has a prefix of its own.",
			conn:   v1alpha1.Connection{Type: "mariadb", Host: "db", Port: ptr.To[int32](3306), Username: "shop"},
			want: map[string]string{
				"type": "mariadb", "host": "db", "port": "3306", "username": "shop",
				"uri": "mariadb://shop:p%40ss@db:3306", "jdbc-url": "jdbc:mariadb://db:3306/",
			},
		},
		"MongoDB": {
			reason: "MongoDB wants a slash before options.",
			conn: v1alpha1.Connection{
				Type: "mongodb", Hosts: members, Username: "shop", Options: map[string]v1alpha1.OptionValue{"replicaSet": "rs0"},
			},
			want: map[string]string{
				"type": "mongodb", "host": "db-a", "port": "5432", "username": "shop",
				"uri":            "mongodb://shop:p%40ss@db-a:5432,db-b:5433/?replicaSet=rs0",
				"multi-host-uri": "mongodb://shop:p%40ss@db-a:5432,db-b:5433/?replicaSet=rs0",
			},
		},
		"RabbitMQ": {
			reason: "RabbitMQ's scheme is AMQP's, and its default virtual host is a slash.",
			conn:   v1alpha1.Connection{Type: "rabbitmq", Host: "mq", Port: ptr.To[int32](5672), Username: "shop", Database: "/"},
			want: map[string]string{
				"type": "rabbitmq", "host": "mq", "port": "5672", "username": "shop", "database": "/",
				"uri": "amqp://shop:p%40ss@mq:5672/%2F",
			},
		},
		"Other": {
			reason: "Any other type is a scheme; a user is not needed.",
			conn:   v1alpha1.Connection{Type: "redis", Host: "fd00::1", Port: ptr.To[int32](6379)},
			want: map[string]string{
				"type": "redis", "host": "fd00::1", "port": "6379", "uri": "redis://:p%40ss@[fd00::1]:6379",
			},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, binding(tc.conn, []byte("p@ss"))); diff != "" {
				t.Errorf("\n%s\nbinding(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzURI shows that a client gets back, byte for byte, what the URI was made of:
// by net/url for one host, and by a client library of PostgreSQL for several.
func FuzzURI(f *testing.F) {
	f.Add("shop", "p@ss", "orders", "sslmode", "disable")
	f.Add("a b", "%41+&=?#/:@[]\\\"'", "a/b?c#d", "application_name", "x&y=z +%")
	f.Add("é", "\u65e5\u672c", ".", "options", "-c a=b")
	f.Add("..", "//", "..", "search_path", "\x7f")
	f.Add("0", "0", "/", "A", "0")
	f.Fuzz(func(t *testing.T, user, password, database, option, value string) {
		if user == "" || password == "" || database == "" || !optionName(option) || strings.ContainsRune(user+password+database+value, 0) {
			t.Skip("the schema refuses it")
		}
		members := []v1alpha1.HostPort{{Host: "db-a.shop.svc", Port: 5432}, {Host: "db-b.shop.svc", Port: 5433}}
		c := v1alpha1.Connection{
			Type: "postgresql", Host: members[0].Host, Port: &members[0].Port, Hosts: members,
			Username: user, Database: database,
			Options:     map[string]v1alpha1.OptionValue{option: v1alpha1.OptionValue(value)},
			JDBCOptions: map[string]v1alpha1.OptionValue{option: v1alpha1.OptionValue(value)},
		}
		got := binding(c, []byte(password))
		u, err := url.Parse(got[v1alpha1.KeyURI])
		if err != nil {
			t.Fatal(err)
		}
		pw, _ := u.User.Password()
		want := []string{"postgresql", user, password, net.JoinHostPort("db-a.shop.svc", "5432"), "/" + database, value, ""}
		if diff := cmp.Diff(want, []string{u.Scheme, u.User.Username(), pw, u.Host, u.Path, u.Query().Get(option), u.Fragment}); diff != "" {
			t.Errorf("uri: -what it was made of, +what a client reads:\n%s", diff)
		}
		jdbc := got[v1alpha1.KeyJDBCURL]
		if j, err := url.Parse(strings.TrimPrefix(jdbc, "jdbc:")); err != nil || j.User != nil || j.Path != "/"+database || j.Query().Get(option) != value {
			t.Errorf("jdbc-url: want database and option as they were, and no user: %v, %v", j, err)
		}

		// The library takes these for itself, and checks them.
		if c.Options = map[string]v1alpha1.OptionValue{"sslmode": "disable"}; option == "application_name" {
			c.Options[option] = v1alpha1.OptionValue(value)
		}
		p, err := pgconn.ParseConfig(binding(c, []byte(password))[v1alpha1.KeyMultiHostURI])
		if err != nil {
			t.Fatal(err)
		}

		// This library, unlike libpq, takes every slash that begins a name for the one before it.
		name := strings.TrimLeft(database, "/")
		if diff := cmp.Diff([]string{user, password, name}, []string{p.User, p.Password, p.Database}); diff != "" {
			t.Errorf("multi-host-uri: -what it was made of, +what a client reads:\n%s", diff)
		}
		hosts := []string{net.JoinHostPort(p.Host, strconv.Itoa(int(p.Port)))}
		for _, h := range p.Fallbacks {
			hosts = append(hosts, net.JoinHostPort(h.Host, strconv.Itoa(int(h.Port))))
		}
		if diff := cmp.Diff([]string{"db-a.shop.svc:5432", "db-b.shop.svc:5433"}, hosts); diff != "" {
			t.Errorf("multi-host-uri: -members, +hosts that a client tries:\n%s", diff)
		}
		if option == "application_name" && p.RuntimeParams[option] != value {
			t.Errorf("multi-host-uri: want option %q, got %q", value, p.RuntimeParams[option])
		}
		if p.ValidateConnect == nil {
			t.Error("multi-host-uri: a client should look for the member that takes writes")
		}
	})
}

// optionName reports whether the schema takes a name.
func optionName(name string) bool {
	return name != "" && strings.Trim(name, lower+upper+digits+"-_.") == "" && !strings.ContainsAny(name[:1], digits+"-_.") &&
		name != "target_session_attrs" && name != "targetServerType"
}
