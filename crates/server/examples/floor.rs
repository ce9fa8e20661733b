//! A server without SQL, which shows the cost of the network side alone. `floor PORT`, then for
//! instance `sysbench oltp_point_select --db-ps-mode=disable --mysql-port=PORT ... run`. It ends
//! when it reads a line from standard input.

#[path = "../tests/common/mod.rs"]
mod common;

fn main() {
    let port = std::env::args().nth(1).unwrap_or_else(|| "13306".into());
    let server = common::TestServer::start(&[("port", &port), ("nfold_pin_workers", "ON")]);
    println!("serving on port {}", server.port);
    let _ = std::io::stdin().read_line(&mut String::new());
    println!("{:?}", server.server().counters().totals());
}
