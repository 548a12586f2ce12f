//! Encrypted connections, with the certificates of files.

use tallygate::Tls;
use tallygate_harness::server::{connected, patient};
use tallygate_harness::tls::{Authority, Clients, TlsServer};

use crate::console::Console;
use crate::seeded::{CALLER, folder, seed, write};

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_read_from_files_and_errors_name_the_option_that_is_missing() {
    let authority = Authority::new("ours");
    let own = authority.issue(&["operator"]);
    let server = TlsServer::start(&authority, Clients::WithCertificate).await;
    let tls = Tls::new().ca(authority.pem()).client_certificate(own.certificate.as_str(), own.key.as_str());
    seed(&connected(&patient().registry(true).tls(tls), &server.url()).await).await;

    let (url, folder) = (server.url(), folder());
    let console = Console { url: &url, folder: folder.path() };
    write(folder.path(), "ca.pem", &authority.pem());
    write(folder.path(), "own.pem", &own.certificate);
    write(folder.path(), "own.key", &own.key);
    console.run(&format!("peek sms.send {CALLER} --ca-file ca.pem --cert-file own.pem --key-file own.key")).expect(1);
    let printed = console.run("policies").expect(4);
    assert!(printed.errors.contains("`--ca-file`"), "{printed:?}");
    let printed = console.run("policies --ca-file ca.pem").expect(4);
    assert!(printed.errors.contains("`--cert-file`"), "{printed:?}");
    let printed = console.run("policies --ca-file ca.pem --cert-file own.pem").expect(2);
    assert!(printed.errors.contains("--key-file"), "{printed:?}");
    write(folder.path(), "other.key", &authority.issue(&["another"]).key);
    let plain = format!("policies --url redis://127.0.0.1:{}/ --ca-file ca.pem", server.server().port());
    for (words, mistake) in [
        ("policies --ca-file own.key", "`--ca-file` holds no certificate"),
        ("policies --cert-file own.key --key-file own.key", "`--cert-file` holds no certificate as PEM"),
        ("policies --cert-file own.pem --key-file own.pem", "`--key-file` holds no private key that can be read"),
        ("policies --cert-file own.pem --key-file other.key", "the certificate of `--cert-file` does not belong to"),
        (&plain, "a file of certificates is given, but `--url` does not ask for it; write `rediss://host:port`"),
    ] {
        let printed = console.run(words).expect(2);
        assert!(printed.errors.contains(mistake) && !printed.errors.contains("`tls`"), "{printed:?}");
    }
}
