package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	ledger "github.com/ration-dev/ration/allocation/memory"
	"github.com/ration-dev/ration/internal/credentials"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/lease/rpc"
)

// selfSigned writes a certificate for 127.0.0.1 and its key.
func selfSigned(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// A client that trusts the server's certificate gets through with its token;
// one that trusts only the system's, or speaks in the clear, does not.
func TestTLS(t *testing.T) {
	cert, key := selfSigned(t)
	secure, err := ServerTLS(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	table, err := credentials.ParseList("tokens", "us=secret")
	if err != nil {
		t.Fatal(err)
	}
	a := NewAllocator(AllocatorOptions{
		Store: ledger.New(wallClock), Credentials: table, Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0", TLS: secure, Log: quiet,
	})
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Stop(t.Context()) }()
	trusting, err := ClientTLS(cert)
	if err != nil {
		t.Fatal(err)
	}
	system, err := ClientTLS("")
	if err != nil {
		t.Fatal(err)
	}
	token := func() string { return "secret" }
	for _, c := range []struct {
		who  string
		dial rpc.Dialing
		ok   bool
	}{
		{"trusting", rpc.Dialing{Token: token, TLS: trusting}, true},
		{"system's certificates", rpc.Dialing{Token: token, TLS: system}, false},
		{"in the clear", rpc.Dialing{Token: token}, false},
	} {
		c.dial.Target = a.GRPCAddr()
		conn, err := rpc.Dial(c.dial)
		if err != nil {
			t.Fatal(err)
		}
		_, err = rpc.NewClient(conn, "").ListBudgets(t.Context(), 0)
		if ok := err == nil; ok != c.ok || !ok && lease.CodeOf(err) != lease.Unavailable {
			t.Errorf("%s: %v", c.who, err)
		}
		_ = conn.Close()
	}
}

func TestTLSFilesAreChecked(t *testing.T) {
	cert, key := selfSigned(t)
	for _, c := range [][2]string{{cert, ""}, {"", key}, {key, cert}, {cert, "/absent"}} {
		if _, err := ServerTLS(c[0], c[1]); err == nil {
			t.Errorf("certificate %s with key %s: want an error", c[0], c[1])
		}
	}
	for _, ca := range []string{key, "/absent"} {
		if _, err := ClientTLS(ca); err == nil {
			t.Errorf("CA %s: want an error", ca)
		}
	}
	if secure, err := ServerTLS("", ""); secure != nil || err != nil {
		t.Errorf("without files: %v, %v", secure, err)
	}
}
