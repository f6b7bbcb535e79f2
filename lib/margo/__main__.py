from margo.cli import main

main()
